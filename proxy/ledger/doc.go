// Package ledger keeps one record of every request in a SQLite file: which attempts
// were made, what became of each, what was decided and how the request ended. Beside the
// records it keeps where a candidate policy has disagreed with the one that decides.
//
// The proxy gives a [Store] to the engine's driver as its [engine.Ledger]. With
// [Batch] durability both calls only encode the record into a buffer; one goroutine
// writes the buffer every tenth of a second. With [Sync] they wait, for a bounded
// time, until the record is on disk. The command line reads the same file through a
// [Reader], also while a proxy writes to it.
//
// A store never fails a request. When the disk is full, the file locked or the
// device broken, records wait in a bounded queue, then they are dropped and counted
// in fourgate_ledger_dropped_total; the log has one line when an outage begins and
// one when it is over.
//
// The package holds what [engine.Record] and [engine.Disagreement] hold, which have no
// field for a prompt, an answer or a key. It opens no network connection and decides nothing.
//
//	store, err := ledger.Open(ledger.Options{Path: "fourgate.db", Logger: logger})
//	if err != nil {
//		return err // one line: which file, why, how to mend it
//	}
//	defer store.Close(ctx)
//	// store.Opened(record) before each attempt, store.Closed(record) at the end,
//	// store.Disagreed(disagreement) whenever a candidate policy has answered
package ledger
