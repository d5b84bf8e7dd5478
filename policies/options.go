package policies

import (
	"path"
	"slices"
	"strings"
	"time"
)

const (
	defaultQuery = "data.fourgate.decision"
	// routeQuery is the optional second entry point. Its name is fixed, because a policy
	// without a rule there simply has none.
	routeQuery = "data.fourgate.route"
	// defaultTimeout is some thousand times what the default policy takes.
	defaultTimeout = 250 * time.Millisecond
)

// Options say which policy to load.
type Options struct {
	// Profile names the embedded policy that answers where no file of the user's own
	// does: one of [Profiles], or empty for the default policy.
	Profile string
	// Paths are files and directories with *.rego, searched below; *_test.rego and
	// hidden names are left out. Without any the embedded policy is used alone. A
	// package of the embedded policy is left out when a file here has the same one.
	Paths []string
	// Modules are Rego files that stand nowhere on disk, such as a bundle's, by the name
	// that problems and rules show. They are compiled beside those of Paths. The map is
	// only read.
	Modules map[string]string
	// Data are documents below data, such as a bundle's. Its names params and fourgate
	// are refused. A text in it has at most 8 KiB, all together 32 MiB of JSON. The map is
	// copied.
	Data map[string]any
	// Query is the decision's entry point, data.fourgate.decision if it is empty.
	Query string
	// Timeout bounds one evaluation; zero means 250 ms. A late one is tried once more.
	Timeout time.Duration
	// Params are data.params and input.params. A text in it has at most 8 KiB, all together
	// 256 KiB of JSON. The map is copied.
	Params map[string]any
	// Location is where the clock of input.clock hangs; nil means UTC.
	Location *time.Location
	// Memory is how many answers are remembered for each entry point: zero means 4096,
	// less means none.
	Memory int
}

// Profiles returns the names of the embedded policies that a configuration may choose
// in place of the default one, sorted.
func Profiles() []string {
	entries, err := embedded.ReadDir("profiles")
	if err != nil {
		panic("BUG: the embedded policy has no profiles")
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

// profileEntry is what stands in entry.rego's place where a profile is chosen.
func profileEntry(profile string) (name, text string) {
	name = builtinPrefix + path.Join("profiles", profile, "entry.rego")
	return name, strings.Join([]string{
		"package fourgate", "", "import data.fourgate.profiles." + profile, "", "decision := " + profile + ".decision", "",
	}, "\n")
}
