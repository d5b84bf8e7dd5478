package sim

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page about the simulator names every word of a fault, and every script that it
// shows as one is readable.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/sim.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, w := range slices.Concat(kindNames[:], breakNames[1:], placeNames[:], flags, settings) {
		if !regexp.MustCompile("`(?:[^`\n]* )?" + regexp.QuoteMeta(w) + "[`=, ]").MatchString(page) {
			t.Errorf("docs/sim.md says nothing of %q", w)
		}
	}
	_, scripts, _ := strings.Cut(page, "## Scripts")
	scripts, _, _ = strings.Cut(scripts, "### What is answered")
	shown := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(scripts, -1)
	if len(shown) < 4 {
		t.Fatalf("%d scripts are shown", len(shown))
	}
	for _, s := range shown {
		if _, err := ParseScript(s[1]); err != nil {
			t.Errorf("docs/sim.md shows %q: %v", s[1], err)
		}
	}
}
