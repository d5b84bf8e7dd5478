package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fourgate-dev/fourgate/plugins"
)

func TestMain(m *testing.M) {
	if os.Getenv(benchChildVar) != "" {
		if err := benchChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testscript.Main(warmed{m}, map[string]func(){
		"fourgate": main,
	})
}

// warmed runs the tests after one plugin runtime: wazero looks its own version up when
// the first starts, and two that start at once race for it.
type warmed struct{ m *testing.M }

func (w warmed) Run() int {
	host, err := plugins.Open(context.Background(), plugins.Options{})
	if err == nil {
		_, err = host.Load(context.Background(), plugins.Module{Name: "warm", Source: "builtin:generic"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer host.Close(context.Background())
	return w.m.Run()
}

// TestScripts runs the command line as its users do, with the real program.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
