package ledger

import (
	"database/sql"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fourgate-dev/fourgate/engine"
)

// TestTheManualIsRight holds docs/ledger.md against the product: its record is one that
// the engine writes, and its SQL runs.
func TestTheManualIsRight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(language string) (all []string) {
		for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			all = append(all, block)
		}
		return all
	}

	examples := blocks("json")
	if len(examples) != 1 {
		t.Fatalf("the manual shows %d records, want one", len(examples))
	}
	r, err := engine.ParseRecord([]byte(examples[0]))
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	for text, to := range map[string]*any{examples[0]: &want, string(r.AppendJSON(nil)): &got} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the manual's record is not what the engine writes:\n%s", diff)
	}

	b := openStore(t, Options{}, seams{})
	b.Closed(r)
	b.close()
	db, err := sql.Open("sqlite", b.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	queries := strings.Split(strings.Join(blocks("sql"), ""), ";\n")
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	if len(queries) < 4 {
		t.Errorf("the manual has %d queries; the test looks at the wrong blocks", len(queries))
	}
}
