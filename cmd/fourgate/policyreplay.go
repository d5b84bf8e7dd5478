package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/policies/replay"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func policyReplayCommand(e *env) *cobra.Command {
	f := replayFlags{now: e.now}
	cmd := &cobra.Command{
		Use: "replay (-c FILE | -ledger DB) [-since 24h] [-until TIME] [-group NAME] [-json] NEW", Args: args(cobra.ExactArgs(1)),
		Short: "Ask a new policy what the ledger says was asked, and what would have gone otherwise",
		Long: "Ask a new policy every question that the ledger has recorded, hold its answers by the interlocks, and say what\n" +
			"would have gone otherwise. Nothing is sent to anybody, and the ledger is only read.\n\n" +
			sourceHelp + "\nWithout -group each request's own group gives them.\n\n" +
			"Of each request only the first decision that changes counts for what would have gone otherwise: whatever was\n" +
			"recorded after it might not have come up. A decision has changed if another action would have followed, or the\n" +
			"same one on another channel that the new policy names; another reason is no change.",
		RunE: func(cmd *cobra.Command, list []string) error { return f.run(cmd.Context(), e, list[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.where.config, "config", "c", "", "configuration that names the ledger, and whose params are used")
	flags.StringVar(&f.where.store, "ledger", "", "the ledger's file, such as a copy")
	flags.Var(&f.since, "since", "only requests of the last such time, such as 24h, or since a time such as 2026-03-01T12:00:00Z")
	flags.Var(&f.until, "until", "only requests before a time, written as for -since")
	flags.StringVar(&f.group, "group", "", "only decisions about attempts of this route group")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.BoolVar(&f.all, "all", false, "print every kind of change and every request id")
	return cmd
}

// replayFlags are the flags of policy replay.
type replayFlags struct {
	where        ledgerFlags
	since, until moment
	group        string
	json, all    bool
	now          func() time.Time
}

// moment is a time as a flag has it: how long ago, or when.
type moment struct {
	ago  time.Duration
	when time.Time
}

func (m *moment) String() string {
	switch {
	case m.ago != 0:
		return m.ago.String()
	case !m.when.IsZero():
		return m.when.Format(time.RFC3339)
	}
	return ""
}

// Type is what the help calls a value.
func (m *moment) Type() string { return "time" }

// Set implements the interface of flags.
func (m *moment) Set(text string) error {
	if ago, err := time.ParseDuration(text); err == nil {
		if ago <= 0 {
			return fmt.Errorf("%s is not in the past", text)
		}
		*m = moment{ago: ago}
		return nil
	}
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return errors.New("write how long ago, such as 24h, or when, such as 2026-03-01T12:00:00Z")
	}
	*m = moment{when: when}
	return nil
}

// at is the moment itself, the zero time if there is none.
func (m *moment) at(now time.Time) time.Time {
	if m.ago != 0 {
		return now.Add(-m.ago)
	}
	return m.when
}

func (f *replayFlags) run(ctx context.Context, e *env, source string) error {
	if f.where.config == "" && f.where.store == "" {
		return usageError{errors.New("name the ledger: -c FILE for the one of a configuration, or -ledger DB")}
	}
	now := f.now()
	since, until := f.since.at(now), f.until.at(now)
	if !since.IsZero() && !until.IsZero() && !since.Before(until) {
		return usageError{fmt.Errorf("nothing lies between -since %s and -until %s; -since is the earlier one", &f.since, &f.until)}
	}
	policy, err := f.policy(ctx, e, source)
	if err != nil {
		return err
	}
	r, err := f.where.open(e, "")
	if err != nil {
		return err
	}
	defer r.Close()

	report := newReplayReport(e.stdout, f, source)
	limited, asker, end := withLimit(ctx, nil, lateInRow)
	defer end()
	again := replay.New(replay.Options{Group: f.group, Changed: report.add, Policy: func(group string) engine.Policy {
		asker.policy = policy(group)
		return asker
	}})
	p := newProgress(e, "asking "+source)
	unreadable, lastErr := 0, error(nil)
	for rec, err := range r.All(ctx, ledger.Filter{Since: since, Until: until, Decided: true}) {
		if err != nil {
			unreadable, lastErr = unreadable+1, err
			continue
		}
		again.Add(rec)
		if limited.Err() != nil {
			break
		}
		p.decisions(again.Totals().Decisions)
	}
	p.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	totals := again.Totals()
	if asker.why != nil {
		return firstOf(report.stop(totals, asker.why.Error()), asker.why)
	}
	if unreadable > 0 {
		totals.Skipped[skippedUnreadable] = unreadable
	}
	// As with a list, what could be read is shown and what couldn't makes a failure of it.
	return firstOf(report.finish(totals), lastErr)
}

// skippedUnreadable counts whole records, which may have had any number of decisions.
const skippedUnreadable = "unreadable_record"

// policy compiles the new policy, once for each group of the configuration that has params
// of its own. A group that the configuration no longer has is asked as the others are.
func (f *replayFlags) policy(ctx context.Context, e *env, source string) (func(string) engine.Policy, error) {
	if f.where.config == "" {
		set, err := loadPolicy(ctx, e, source, nil)
		return func(string) engine.Policy { return set }, err
	}
	grounds, err := f.grounds(e)
	if err != nil {
		return nil, err
	}
	// Under the empty name is the policy of the groups that have no block of their own.
	sets := map[string]engine.Policy{}
	var other engine.Policy
	for _, ground := range grounds {
		name := ground.ownPolicy().Group
		if sets[name] != nil {
			continue
		}
		set, err := loadPolicy(ctx, e, source, ground)
		if err != nil {
			return nil, err
		}
		sets[name] = set
		if other == nil || name == "" {
			other = set
		}
	}
	return func(group string) engine.Policy {
		if set, own := sets[group]; own {
			return set
		}
		return other
	}, nil
}

// grounds are the configuration's groups as policies stand on them.
func (f *replayFlags) grounds(e *env) ([]*policyGround, error) {
	config, named, diags := hcl.LoadNamed(f.where.config, hcl.Environment{LookupEnv: e.lookup, WithoutSecrets: true})
	if diags.HasErrors() {
		return nil, reported(e, diags)
	}
	var grounds []*policyGround
	var names []string
	for _, group := range config.Catalog.Groups() {
		names = append(names, group.Name())
		grounds = append(grounds, &policyGround{path: f.where.config, config: config, named: named, group: group})
	}
	if f.group != "" && !slices.Contains(names, f.group) {
		return nil, noSuchGroup(f.group, f.where.config, names)
	}
	return grounds, nil
}
