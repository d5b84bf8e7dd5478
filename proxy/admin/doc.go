// Package admin serves what a platform engineer and a scraper ask a running proxy:
// metrics, liveness, readiness, and what is set aside; and it changes the latter by hand.
// It listens apart from the callers' listener and knows no request and no secret.
//
// Reading changes nothing. Each change is told to a [Recorder] with who made it and what
// was there before. A browser on the same machine can't be made to change anything: see
// guard.go.
//
// cmd/fourgate serves it:
//
//	srv := admin.New(admin.Parts{Gatherer: registry, Ready: proxy.Ready, Token: token, …})
//	err := srv.Serve(listener)
package admin
