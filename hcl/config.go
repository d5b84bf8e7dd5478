package hcl

import (
	"crypto/tls"
	"io/fs"
	"os"
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
	Policy      Policy
	Ledger      Ledger
	Files       []string // the files that were read, for whoever watches them
}

// Server is what the proxy listens on and how it treats a connection.
type Server struct {
	Listen       string        // host:port
	AdminListen  string        // host:port; empty when there is no admin listener
	AdminToken   engine.Secret // wanted as a bearer token by the admin listener; empty asks for none
	MaxBody      int64         // bytes of a request body
	DebugHeaders bool          // answer with X-Fourgate-Channel, -Strategy and -Attempts
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
	Paths   []string // files or directories; none means the embedded policy
	Query   string   // the rule that is asked, "data.fourgate.decision"
	Timeout time.Duration
	// Params is data.params: nil, bool, string, [json.Number], []any and
	// map[string]any.
	Params map[string]any
}

// Named is what a configuration names outside of itself. It is there also if the
// configuration has errors: so much of it as can be checked in spite of them, so that
// whoever mends it sees those of its policy and its modules in the same run.
type Named struct {
	// Policy is nil if nothing was read that says which.
	Policy *Policy
	// PolicyIsPartial says that an error has left something out of Policy, whose absence
	// may be the reason if another thing seems to be missing in it.
	PolicyIsPartial bool
	// Classifiers are those without an error.
	Classifiers []Classifier
	// Ledger is nil if its block has an error, or a file couldn't be read.
	Ledger *Ledger

	modules map[string]Diagnostic // by classifier: an error at its module, without words
}

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

// Environment is what a configuration can see of the world. A nil LookupEnv has no
// variables; a nil ReadFile or ReadDir reads the file system.
type Environment struct {
	LookupEnv func(name string) (string, bool)
	ReadFile  func(path string) ([]byte, error)
	ReadDir   func(path string) ([]fs.DirEntry, error)
}

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
