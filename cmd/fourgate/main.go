// Command fourgate is a policy-as-code routing engine for AI APIs: a proxy whose every
// replay is decided by a Rego policy. See the README for a first run and docs/ for the
// rest.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what the first one couldn't
	code := run(ctx, processEnv())
	stop()
	os.Exit(code)
}
