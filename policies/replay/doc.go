// Package replay asks a policy again what the ledger says another one was asked, and
// adds up what would have gone otherwise: attempts that would not have been made or would
// have been, and successes that would have been lost.
//
// It takes one record after the other and keeps only sums, so a ledger may have any size.
// It opens no file, starts nothing and changes nothing; the policy is called from the
// caller's goroutine.
//
// A record tells what came of what was decided, never what would have come of something
// else. So of each request only the first decision that changes is counted as an outcome:
// what was asked after it might not have been asked. Whether an attempt that was never
// made would have succeeded is not guessed.
//
//	r := replay.New(replay.Options{Policy: func(string) engine.Policy { return candidate }})
//	for rec, err := range reader.All(ctx, ledger.Filter{Decided: true}) {
//		r.Add(rec)
//	}
//	totals := r.Totals()
package replay
