package hcl

import (
	"crypto/tls"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// Config is a configuration without a single error in it. It doesn't change: a reload
// makes another one. Its paths are absolute or relative to the working directory; they
// were written relative to the configuration's own directory.
type Config struct {
	Server      Server
	Classifiers []Classifier
	Spec        engine.Spec     // providers, groups and callers as the file says them
	Catalog     *engine.Catalog // the same, checked
	Policy      Policy          // of all groups without one of their own
	// GroupPolicies are those of groups with a policy block, by the group's name. What
	// such a block leaves out is filled in from Policy.
	GroupPolicies map[string]Policy
	Ledger        Ledger
	State         State
	Files         []string // the files of the configuration that were read
}

// Server is what the proxy listens on and how it treats a connection.
type Server struct {
	Listen       string        // host:port
	AdminListen  string        // host:port; empty when there is no admin listener
	AdminToken   engine.Secret // wanted as a bearer token by the admin listener; empty asks for none
	MaxBody      int64         // bytes of a request body
	DebugHeaders bool          // answer with X-Fourgate-Channel, -Strategy, -Attempts, -Chain and -Out
	DrainTimeout time.Duration // how long requests in flight may finish at shutdown
	Anonymous    bool          // callers without a key are meant
	// Certificate is shown to callers, with its chain and its key; nil means plain HTTP.
	Certificate *tls.Certificate
}

// Classifier is one module that turns a failure into a verdict.
type Classifier struct {
	Name        string
	Module      string        // "builtin:NAME", "oci://…", "oci-layout://…" or the path of a .wasm file
	SHA256      string        // lower-case hex of the module; empty for a builtin, and perhaps for an artifact
	Profile     string        // "wasi" for a module that needs WASI, or empty
	Timeout     time.Duration // of one classification
	MemoryBytes int64         // the most linear memory that the module may have, and its shadow
	Shadow      *Shadow       // nil for none
}

// Shadow is a candidate beside a classifier, which is compared and decides nothing. Its
// fields are as the classifier's.
type Shadow struct {
	Module  string
	SHA256  string
	Profile string
	Timeout time.Duration
}

// Policy says which Rego answers, and how long it may take.
type Policy struct {
	Paths   []string // files or directories; without paths, profile and bundle it is the embedded policy
	Profile string   // a policy of the program's other than the default one, or empty
	Bundle  *Bundle  // where the policy is fetched from, nil for none
	Query   string   // the rule that is asked, "data.fourgate.decision"
	Timeout time.Duration
	// Location is the time zone of what a policy sees of the time.
	Location *time.Location
	// Params is data.params: nil, bool, string, [json.Number], []any and
	// map[string]any.
	Params map[string]any
	// Shadow is a candidate that is asked alongside and decides nothing, nil for none. It
	// has no shadow itself.
	Shadow *Policy
}

// Bundle is where a policy is fetched from, and whose signature it must have.
type Bundle struct {
	URL       string        // https://…, http://… or oci://…
	PublicKey string        // in PEM form
	Algorithm string        // of the signature, such as "ES256"; empty for the usual one of the key
	KeyID     string        // the key's name in the signature; empty for any
	Scope     string        // what the signature says that it is for; empty for one that says nothing
	Token     engine.Secret // shown as a bearer token; empty shows none
	// AuthoritiesPEM are certificates that are trusted besides the system's; empty for none.
	AuthoritiesPEM string
	Poll           time.Duration // between two looks
	Cache          string        // the directory of the last good bundle
}

// PolicyOf returns the policy that decides for a group.
func (c *Config) PolicyOf(group string) Policy {
	if p, own := c.GroupPolicies[group]; own {
		return p
	}
	return c.Policy
}

// Named is what a configuration names outside of itself. It is there also if the
// configuration has errors: so much of it as can be checked in spite of them, so that
// whoever mends it sees those of its policy and its modules in the same run.
type Named struct {
	// Policies are the configuration's, first that of all groups. It is empty if nothing
	// was read that says which.
	Policies []NamedPolicy
	// Classifiers are those without an error.
	Classifiers []Classifier
	// Ledger is nil if its block has an error, or a file couldn't be read.
	Ledger *Ledger
	// Server is nil if its block has an error, or a file couldn't be read.
	Server *Server

	modules  map[string]Diagnostic // by classifier: an error at its module, without words
	policies map[string]Diagnostic // by [policyPlace]: the same for policies
}

// NamedPolicy is a policy that a configuration names.
type NamedPolicy struct {
	Group  string // whose own it is; empty for that of all groups
	Policy Policy
	// Partial says that an error has left something out of it, whose absence may be the
	// reason if another thing seems to be missing in it.
	Partial bool
}

// PolicyError returns an error with the place where a group's policy, or with an empty
// group that of all, says something: an argument such as "profile" or "shadow.paths",
// where it is written, or else its block. An argument that the group's block leaves out
// has its place in the outer one.
func (n Named) PolicyError(group, argument, summary, detail string) Diagnostic {
	block, _, _ := strings.Cut(argument, ".") // of a candidate's argument
	var diag Diagnostic
	for _, at := range []string{
		policyPlace(group, argument), policyPlace(group, block), policyPlace("", argument), policyPlace("", block),
		policyPlace(group, ""), policyPlace("", ""),
	} {
		var found bool
		if diag, found = n.policies[at]; found {
			break
		}
	}
	diag.Severity, diag.Summary, diag.Detail = Error, summary, detail
	return diag
}

func policyPlace(group, argument string) string { return group + "\x00" + argument }

// ModuleError returns an error with the place where the module of a classifier is named.
func (n Named) ModuleError(classifier, summary, detail string) Diagnostic {
	diag := n.modules[classifier]
	diag.Summary, diag.Detail = summary, detail
	return diag
}

// Ledger says where the records of requests go.
type Ledger struct {
	Store      string // "sqlite" or "none"
	Path       string // of the database file; empty without a store
	Durability string // "batch" or "sync"
	Retention  time.Duration
}

// State says where instances share what they learn of keys, channels, models and rates.
type State struct {
	Backend string // "memory" for nowhere, or "redis", which Valkey is, too
	// URL is the backend's, with user and password if it wants them. Empty without one, and
	// so are the fields below.
	URL            engine.Secret
	AuthoritiesPEM string // certificates that are trusted for rediss:// instead of the system's; empty for those
	Prefix         string // of all keys
	OnOutage       string // "local": go on with what is known here; "refuse": refuse requests
	Breakers       bool   // open breakers are shared, too
}

// Environment is what a configuration can see of the world. A nil LookupEnv has no
// variables; a nil ReadFile or ReadDir reads the file system.
type Environment struct {
	LookupEnv func(name string) (string, bool)
	ReadFile  func(path string) ([]byte, error)
	ReadDir   func(path string) ([]fs.DirEntry, error)
	// WithoutSecrets reads a configuration for a look at its policies, where nobody has its
	// secrets: each is checked for its form and not read. Nothing can be sent with it.
	WithoutSecrets bool
}

// unread stands for a secret that was not read.
const unread = "unread"

// Process returns the environment of the running process.
func Process() Environment { return Environment{LookupEnv: os.LookupEnv} }

func (e Environment) lookup(name string) (string, bool) {
	if e.LookupEnv == nil {
		return "", false
	}
	return e.LookupEnv(name)
}

func (e Environment) readFile(path string) ([]byte, error) {
	if e.ReadFile == nil {
		return os.ReadFile(path)
	}
	return e.ReadFile(path)
}

// reach returns why nothing at path can be read, nil for a directory or a file that can
// be. It keeps nothing of what is there.
func (e Environment) reach(path string) (isDir bool, err error) {
	_, notListed := e.readDir(path)
	if notListed == nil {
		return true, nil
	}
	if e.ReadFile != nil {
		_, err := e.ReadFile(path)
		return false, err
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return false, err
	case info.IsDir():
		return true, notListed
	case !info.Mode().IsRegular():
		return false, nil // to open a pipe would wait for who writes to it
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	return false, f.Close()
}

func (e Environment) readDir(path string) ([]fs.DirEntry, error) {
	if e.ReadDir == nil {
		return os.ReadDir(path)
	}
	return e.ReadDir(path)
}
