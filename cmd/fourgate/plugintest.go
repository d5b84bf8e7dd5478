package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/plugins"
	"github.com/fourgate-dev/fourgate/plugins/starter"
)

// builtinSubject names all built-in classifiers on a command line: each case goes to the
// one for its provider.
const builtinSubject = "builtin"

// shares are percentages that a run must reach.
type shares struct{ class, scope, wait float64 }

// check refuses what is no percentage, with which any run would pass or none.
func (s shares) check() error {
	for _, f := range []struct {
		name  string
		least float64
	}{{"class", s.class}, {"scope", s.scope}, {"retry-after", s.wait}} {
		if !(f.least >= 0 && f.least <= 100) { // NaN is neither
			return fmt.Errorf("-min-%s is %g; use a percentage from 0 to 100", f.name, f.least)
		}
	}
	return nil
}

func pluginTestCommand(e *env) *cobra.Command {
	var asJSON bool
	var timeout time.Duration
	least := shares{}
	cmd := &cobra.Command{
		Use: "test [-json] DIR|FILE.wasm|builtin CORPUS", Short: "Run a classifier over a corpus", Args: args(cobra.RangeArgs(1, 2)),
		Long: "Run a classifier over a corpus: a .jsonl file, or a directory of them. With " + builtinSubject + " each case goes\nto the built-in classifier for its provider. A plugin's directory has its own corpus.\n\n" +
			"A case is right if the class is the expected one or one of its alternatives, the scope is the expected\none, and so is the wait where it is tested. What the engine decides itself (the caller has gone, output\nhad been seen) is applied as for a request. Every case runs twice and must get one verdict.\n\n" +
			"The exit code is 1 if a case is not right, or, with a -min flag, if a share is below it.",
		RunE: func(cmd *cobra.Command, list []string) error {
			if err := least.check(); err != nil {
				return usageError{err}
			}
			corpus, err := corpusOf(list)
			if err != nil {
				return err
			}
			cases, err := readCorpora(corpus)
			if err != nil {
				return err
			}
			b := &bench{e: e, ctx: cmd.Context(), timeout: timeout}
			results, err := b.run(list[0], cases)
			if err != nil {
				return err
			}
			sum := tally(results)
			if asJSON {
				err = json.NewEncoder(e.stdout).Encode(resultsJSON(results))
			} else {
				err = drawResults(e.stdout, results, sum)
			}
			if err != nil {
				return err
			}
			flags := cmd.Flags()
			return sum.judge(least, flags.Changed("min-class") || flags.Changed("min-scope") || flags.Changed("min-retry-after"))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.DurationVar(&timeout, "timeout", 0, "the time for one classification (default as in a configuration)")
	flags.Float64Var(&least.class, "min-class", 0, "pass if so many percent of the classes are right")
	flags.Float64Var(&least.scope, "min-scope", 0, "pass if so many percent of the scopes are right")
	flags.Float64Var(&least.wait, "min-retry-after", 0, "pass if so many percent of the tested waits are right")
	return cmd
}

// corpusOf returns the path of the corpus that a command line names or means.
func corpusOf(list []string) (string, error) {
	if len(list) == 2 {
		return list[1], nil
	}
	own := filepath.Join(list[0], starter.Corpus)
	if _, err := os.Stat(own); err != nil {
		return "", usageError{fmt.Errorf("the corpus is missing; name a .jsonl file or a directory of them behind %q", list[0])}
	}
	return own, nil
}

// readCorpora reads a corpus file, or all of a directory; ids are unique in each file.
func readCorpora(path string) ([]plugins.Case, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot read corpus: %w", err)
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.jsonl")); err != nil {
			return nil, fmt.Errorf("cannot read corpus %q: %w", path, err)
		}
		slices.Sort(files)
	}
	var all []plugins.Case
	var problems []error
	for _, name := range files {
		cases, err := readCorpusFile(name)
		problems = append(problems, err)
		all = append(all, cases...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot test: there is no case in %q; a corpus is a .jsonl file with one case a line", path)
	}
	return all, nil
}

func readCorpusFile(name string) ([]plugins.Case, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read corpus: %w", err)
	}
	cases, err := plugins.ReadCorpus(f, name)
	return cases, errors.Join(err, f.Close())
}

// result is what became of one case.
type result struct {
	plugins.Case
	got      engine.Verdict // with what the engine decides itself
	score    plugins.Score
	unstable bool // a second run said something else
}

func (r *result) ok() bool { return r.score.Class && r.score.Scope && r.score.Wait && !r.unstable }

// patientTimeout is what a configuration gives built-in modules and those with a profile.
const patientTimeout = 250 * time.Millisecond

// bench runs classifiers over cases.
type bench struct {
	e       *env
	ctx     context.Context
	timeout time.Duration
	host    *plugins.Host
	loaded  map[string]engine.Classifier // by source
	hours   int
}

// now is a clock that is hours later each time it is asked: a classifier that is set
// aside for its faults is back for the next case, which is to be judged by itself.
func (b *bench) now() time.Time {
	b.hours++
	return time.Unix(0, 0).Add(time.Duration(b.hours) * time.Hour)
}

func (b *bench) run(subject string, cases []plugins.Case) (results []result, err error) {
	source := ""
	if subject != builtinSubject {
		if source, err = moduleAt(subject); err != nil {
			return nil, err
		}
		if staleModule(subject) {
			fmt.Fprintf(b.e.stderr, "fourgate: the source in %s is newer than %s; run 'fourgate plugin build %s'\n", subject, starter.Module, subject)
		}
	}
	b.loaded = map[string]engine.Classifier{}
	options := hostOptions(b.e)
	options.Now = b.now
	if b.host, err = plugins.Open(b.ctx, options); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.host.Close(context.WithoutCancel(b.ctx))) }()
	for _, c := range cases {
		from := source
		if from == "" {
			from = plugins.BuiltinPrefix + plugins.BuiltinFor(c.Provider)
		}
		classifier, err := b.classifier(from)
		if err != nil {
			return nil, err
		}
		first := classifier.Classify(c.Evidence)
		second := classifier.Classify(c.Evidence)
		got := judged(first, c.Evidence)
		results = append(results, result{c, got, c.Want.Score(got), first != second})
	}
	return results, b.ctx.Err()
}

func (b *bench) classifier(source string) (engine.Classifier, error) {
	if c := b.loaded[source]; c != nil {
		return c, nil
	}
	m := plugins.Module{Name: source, Source: source, Timeout: b.timeout}
	_, builtin := cutBuiltin(source)
	if !builtin {
		// Whoever tests a module has it at hand; the pin is for what a proxy loads.
		found, err := b.host.Inspect(b.ctx, m)
		if err != nil {
			return nil, err
		}
		if len(found.Problems) > 0 {
			return nil, fmt.Errorf("cannot load module %q:\n  %s", source, strings.Join(found.Problems, "\n  "))
		}
		m.SHA256, m.Profile = found.SHA256, found.Profile
	}
	if m.Timeout == 0 && (builtin || m.Profile != "") {
		m.Timeout = patientTimeout
	}
	c, err := b.host.Load(b.ctx, m)
	b.loaded[source] = c
	return c, err
}

// judged completes a verdict as the engine does. An answer that ended well isn't put to a
// classifier by the engine at all, so what is said of one stands as it is.
func judged(v engine.Verdict, ev *engine.Evidence) engine.Verdict {
	if v.Fault == "" && !ev.CallerGone && (v.Class == engine.ClassOK || v.Class == engine.ClassRefusal) {
		return v
	}
	f := engine.FailureOf(v, ev)
	return engine.Verdict{Class: f.Class(), Scope: f.Scope(), Reason: f.Reason(), RetryAfter: f.RetryAfter(), Fault: f.Fault()}
}
