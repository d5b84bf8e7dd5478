package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies"
)

// explainFlags say which question is explained.
type explainFlags struct {
	ground  groundFlags
	ledger  string
	request string
	attempt int
	input   string
	json    bool
}

// explained is a question with where it came from.
type explained struct {
	question engine.Question
	group    string                 // whose policy was asked, of a record
	assumed  []string               // facts that the input didn't have
	params   map[string]any         // of the input, nil if it had none
	recorded *engine.DecisionRecord // nil for an input
}

func policyExplainCommand(e *env) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain (-c FILE | -ledger FILE) -request ID [-attempt N] | -input FILE [POLICY]",
		Short: "Explain one decision, and what would change it", Args: args(cobra.MaximumNArgs(1)),
		Long: "Explain what a policy decides about one failed attempt: the gates, the rule that answered with its\n" +
			"lines, the interlock that would act, and which single change of the question would change the\n" +
			"decision. The question is one that was recorded, or an input as docs/policies.md shows it, of which\n" +
			"facts may be missing. Without POLICY it is the configuration's, or else the default policy.\n\n" + sourceHelp,
		RunE: func(cmd *cobra.Command, list []string) error {
			source := ""
			if len(list) == 1 {
				source = list[0]
			}
			return f.run(cmd.Context(), e, source)
		},
	}
	f.ground.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.ledger, "ledger", "", "the ledger's file, instead of the one that the configuration names")
	flags.StringVar(&f.request, "request", "", "explain an attempt of this request: its id or the beginning of it")
	flags.IntVar(&f.attempt, "attempt", 0, "the attempt's number (default: the last one that the policy was asked about)")
	flags.StringVar(&f.input, "input", "", "explain the question in this JSON file; - reads it from the standard input")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *explainFlags) check() error {
	switch {
	case f.request == "" && f.input == "":
		return errors.New("the question is missing; name a recorded request with -request ID, or a JSON file with -input FILE")
	case f.request != "" && f.input != "":
		return errors.New("-request and -input are two questions; give one of them")
	case f.request != "" && f.ground.config == "" && f.ledger == "":
		return errors.New("-request needs the ledger; name the configuration with -c FILE, or the file with -ledger FILE")
	case f.input != "" && (f.ledger != "" || f.attempt != 0):
		return errors.New("-ledger and -attempt belong to -request; an input needs neither")
	case f.attempt < 0:
		return fmt.Errorf("-attempt is %d; attempts are counted from 1", f.attempt)
	}
	return nil
}

func (f *explainFlags) run(ctx context.Context, e *env, source string) error {
	if err := f.check(); err != nil {
		return usageError{err}
	}
	var x explained
	var err error
	if f.request != "" {
		if x, err = f.fromLedger(ctx, e); err != nil {
			return err
		}
		if f.ground.config != "" && f.ground.group == "" {
			f.ground.group = x.group
		}
	}
	ground, err := f.ground.open(e)
	if err != nil {
		return err
	}
	if f.input != "" {
		if x, err = f.fromInput(e, ground); err != nil {
			return err
		}
	}
	if source == "" {
		source = embeddedSource
		if ground != nil {
			source = configSource
		}
	}
	set, err := loadPolicy(ctx, e, source, ground)
	if err != nil {
		return err
	}
	if err := sameParams(x.params, set.Params()); err != nil {
		return err
	}
	why := set.Explain(ctx, x.question)
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(e.stdout).Encode(explanationJSON(&x, &why))
	}
	return drawExplanation(e.stdout, &x, &why)
}

// fromLedger rebuilds what the policy was asked.
func (f *explainFlags) fromLedger(ctx context.Context, e *env) (explained, error) {
	where := ledgerFlags{config: f.ground.config, store: f.ledger}
	r, err := where.open(e, "")
	if err != nil {
		return explained{}, err
	}
	defer r.Close()
	record, err := r.Get(ctx, f.request)
	if err != nil {
		return explained{}, err
	}
	attempts := record.Attempts()
	if f.attempt > len(attempts) {
		return explained{}, fmt.Errorf("cannot explain attempt %d: request %s has %s", f.attempt, record.RequestID(), count(len(attempts), "attempt"))
	}
	at := f.attempt - 1
	if f.attempt == 0 {
		for at = len(attempts) - 1; at >= 0; at-- {
			if _, asked := record.Question(at); asked {
				break
			}
		}
	}
	if q, asked := record.Question(at); asked {
		decision, _ := attempts[at].Decision()
		// The first attempt is on the primary group, whose policy decides for all of them.
		return explained{question: q, group: attempts[0].Group(), recorded: &decision}, nil
	}
	return explained{}, fmt.Errorf("cannot explain request %s: %s", record.RequestID(), unasked(attempts, f.attempt))
}

// unasked says why a record has no question: of one attempt, or of all for 0.
func unasked(attempts []engine.AttemptRecord, n int) string {
	decided, failed := false, false
	for i := range attempts {
		if n == 0 || n == i+1 {
			_, d := attempts[i].Decision()
			decided, failed = decided || d, failed || attempts[i].Failed()
		}
	}
	switch {
	case decided:
		return "its record is of an older version, which didn't keep what the policy was asked; write the question by hand and use -input"
	case failed:
		return "no policy was asked, because the caller had gone or an answer had begun"
	case n > 0:
		return fmt.Sprintf("attempt %d has not failed, so no policy was asked", n)
	}
	return "none of its attempts has failed, so no policy was asked"
}

// maxInput bounds what is read of an input in bytes; a question that is half as large is
// refused.
const maxInput = 2 << 20

// fromInput reads a question from a file, on the clock of the policy's configuration.
func (f *explainFlags) fromInput(e *env, ground *policyGround) (explained, error) {
	in, name := e.stdin, "standard input"
	if f.input != "-" {
		file, err := os.Open(f.input)
		if err != nil {
			return explained{}, fmt.Errorf("cannot read question: %w", err)
		}
		defer file.Close()
		in, name = file, f.input
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput))
	if err != nil {
		return explained{}, fmt.Errorf("cannot read question from %s: %w", name, err)
	}
	var x explained
	if x.question, x.assumed, err = policies.ParsePartialQuestion(text, ground.policy().Location); err != nil {
		return explained{}, fmt.Errorf("%s: %w", name, err)
	}
	if ground != nil {
		if slices.Contains(x.assumed, "attempt.group") {
			x.question.Group = ground.group.Name()
		}
		if caller := ground.caller(); caller != "" && slices.Contains(x.assumed, "request.caller") {
			x.question.Caller = caller
		}
	}
	var rest struct {
		Params map[string]any `json:"params"`
	}
	if err := json.Unmarshal(text, &rest); err != nil {
		return explained{}, fmt.Errorf("%s: cannot read params: %w", name, err)
	}
	x.params = rest.Params
	return x, nil
}

// sameParams refuses an input whose params aren't the policy's: it would be explained with
// other ones than it shows.
func sameParams(given, used map[string]any) error {
	if len(given) == 0 {
		return nil
	}
	a, err := json.Marshal(given)
	if err != nil {
		return err
	}
	b, err := json.Marshal(used)
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("the input's params are %s, the policy's are %s; params come from the configuration: name it with -c FILE, or leave them out of the input", a, b)
	}
	return nil
}

// foreseen says in words what the engine would make of a decision.
func foreseen(q *engine.Question, d engine.Decision) (engine.Interlock, string) {
	lock := engine.Foresee(q, d)
	wait, follows := engine.Follows(q, d)
	switch {
	case follows && lock == engine.InterlockRetryAfter:
		return lock, fmt.Sprintf("the attempt is put off to the upstream's Retry-After, %v", wait)
	case follows && wait > 0:
		return lock, fmt.Sprintf("another attempt follows after %v", wait)
	case follows:
		return lock, "another attempt follows at once"
	case lock == engine.InterlockRetryAfter:
		return lock, "the upstream's Retry-After leaves no useful time, so no attempt follows"
	case lock == engine.InterlockNone && d.Fault != "":
		return lock, "a policy at fault aborts, so no attempt follows"
	case lock == engine.InterlockNone:
		return lock, "the policy itself aborts, so no attempt follows"
	}
	return lock, holds(lock) + ", so no attempt follows"
}

// holds is what is the case when an interlock acts on a decision.
func holds(i engine.Interlock) string {
	switch i {
	case engine.InterlockCommitted:
		return "the caller has had output"
	case engine.InterlockCancelled:
		return "the caller has gone"
	case engine.InterlockBudget:
		return "attempts or useful time are spent"
	case engine.InterlockContract:
		return "it would be another contract"
	case engine.InterlockEligible:
		return "that route isn't there, or is set aside"
	case engine.InterlockEffects:
		return "a replay could do something twice"
	case engine.InterlockRetryBudget:
		return "the group's retry budget is spent"
	}
	return "an interlock acts"
}

// effectsText is a decision's effects in words.
func effectsText(effects []engine.Effect) string {
	if len(effects) == 0 {
		return "none"
	}
	var list []string
	for _, eff := range effects {
		text := eff.Kind.String()
		if eff.For > 0 {
			text += " for " + eff.For.String()
		}
		if eff.After > 1 {
			text += fmt.Sprintf(" after %d", eff.After)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
