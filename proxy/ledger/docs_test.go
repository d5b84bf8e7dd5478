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

// TestTheManualIsRight holds docs/ledger.md against the product: its record, its
// disagreement and its change are such as the product writes, and its SQL runs.
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
	if len(examples) != 3 {
		t.Fatalf("the manual shows %d examples, want a record, a disagreement and a change", len(examples))
	}
	r, err := engine.ParseRecord([]byte(examples[0]))
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.ParseDisagreement([]byte(examples[1]))
	if err != nil {
		t.Fatal(err)
	}
	var c Change
	if err := json.Unmarshal([]byte(examples[2]), &c); err != nil {
		t.Fatal(err)
	}
	changed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, written := range [][]byte{r.AppendJSON(nil), d.AppendJSON(nil), changed} {
		var want, got any
		for text, to := range map[string]*any{examples[i]: &want, string(written): &got} {
			if err := json.Unmarshal([]byte(text), to); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("example %d of the manual is not what the engine writes:\n%s", i+1, diff)
		}
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
