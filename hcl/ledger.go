package hcl

var (
	storeWords      = words{now: []string{"sqlite", "none"}, later: []string{"postgres"}}
	durabilityWords = words{now: []string{"batch", "sync"}}
)

func (d *decoder) ledger(s *section) {
	l := Ledger{
		Store:      s.word("store", "sqlite", storeWords),
		Path:       s.str("path", defaultLedgerPath),
		Durability: s.word("durability", "batch", durabilityWords),
		Retention:  s.duration("retention", defaultRetention, minRetention, maxRetention),
	}
	switch {
	case l.Store == "none":
		if s.has("path") {
			s.warn(s.placeOfAttr("path"), "Path of a ledger without a store",
				"store = \"none\" writes nothing. Remove path, or set store = \"sqlite\".")
		}
		l.Path = ""
	case l.Path == "":
		s.failAt("path", s.placeOfAttr("path"), "Empty ledger path",
			"Write the path of the database file, such as %q, or set store = \"none\".", defaultLedgerPath)
	}
	l.Path = d.resolve(l.Path)
	d.cfg.Ledger = l
}
