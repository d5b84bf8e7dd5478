package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/hcl"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func ledgerCommand(e *env) *cobra.Command {
	return group("ledger", "Read the records of requests", ledgerListCommand(e), ledgerShowCommand(e), ledgerDisagreementsCommand(e), ledgerChangesCommand(e))
}

// ledgerFlags say where the ledger is.
type ledgerFlags struct{ config, store string }

func (f *ledgerFlags) add(cmd *cobra.Command) {
	configFlag(cmd, &f.config)
	cmd.Flags().StringVar(&f.store, "ledger", "", "the ledger's file, instead of the one that the configuration names")
}

// open opens the ledger. A group that is asked for, if it isn't empty, must be one of the
// configuration; with a file alone it may be one that is gone.
func (f *ledgerFlags) open(e *env, group string) (*ledger.Reader, error) {
	path := f.store
	if path == "" {
		// Whoever reads a ledger needn't have the proxy's secrets and policies at hand.
		config, named, diags := hcl.LoadNamed(f.config, hcl.Environment{LookupEnv: e.lookup})
		if err := f.checkGroup(config, group); err != nil {
			return nil, err
		}
		if named.Ledger == nil {
			return nil, reported(e, diags)
		}
		if named.Ledger.Store != "sqlite" {
			return nil, fmt.Errorf("%s keeps no ledger; write ledger { store = \"sqlite\" } and restart the proxy", f.config)
		}
		path = named.Ledger.Path
	}
	return ledger.OpenReader(path)
}

func (f *ledgerFlags) checkGroup(config *hcl.Config, group string) error {
	if config == nil || group == "" {
		return nil
	}
	var names []string
	for _, g := range config.Catalog.Groups() {
		names = append(names, g.Name())
	}
	if slices.Contains(names, group) {
		return nil
	}
	return noSuchGroup(group, f.config, names)
}

func ledgerListCommand(e *env) *cobra.Command {
	var where ledgerFlags
	var filter ledger.Filter
	var since moment
	var class, terminal string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list -c FILE", Short: "List requests, the newest first", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readWords(&filter, class, terminal); err != nil {
				return err
			}
			if filter.Limit < 1 {
				return usageError{fmt.Errorf("-limit is %d; ask for at least 1", filter.Limit)}
			}
			filter.Since = since.at(e.now())
			r, err := where.open(e, "")
			if err != nil {
				return err
			}
			defer r.Close()
			records, err := r.List(cmd.Context(), filter)
			if len(records) == 0 && err != nil {
				return err
			}
			if asJSON {
				list := make([]json.RawMessage, len(records))
				for i, rec := range records {
					list[i] = rec.AppendJSON(nil)
				}
				return firstOf(json.NewEncoder(e.stdout).Encode(map[string]any{"requests": list}), err)
			}
			return firstOf(drawRequests(e.stdout, records), err)
		},
	}
	where.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.IntVar(&filter.Limit, "limit", ledger.DefaultLimit, "at most so many")
	flags.Var(&since, "since", "only requests of the last such time, such as 1h, or since a time such as 2026-03-01T12:00:00Z")
	flags.StringVar(&filter.Model, "model", "", "only for this model")
	flags.StringVar(&filter.Caller, "caller", "", "only from this caller")
	flags.StringVar(&filter.Channel, "channel", "", "only with an attempt on this channel")
	flags.StringVar(&class, "class", "", "only with a failure of this class, such as rate_limited")
	flags.BoolVar(&filter.Disagreed, "disagreed", false, "only where a candidate policy would have decided otherwise")
	flags.StringVar(&terminal, "terminal", "", "only ended so: success, exhausted, cancelled, partial, policy_stop; or running")
	return cmd
}

func readWords(f *ledger.Filter, class, terminal string) error {
	if class != "" {
		c, err := readWord("class", class, engine.ParseClass)
		if err != nil {
			return err
		}
		f.Class = &c
	}
	switch terminal {
	case "":
	case "running":
		f.Running = true
	default:
		t, err := readWord("terminal", terminal, engine.ParseTerminal, "running")
		if err != nil {
			return err
		}
		f.Terminal = t
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func drawRequests(w io.Writer, records []*engine.Record) error {
	if len(records) == 0 {
		_, err := fmt.Fprintln(w, "no request matches")
		return err
	}
	t := newTable("ARRIVED", "REQUEST", "CALLER", "MODEL", "ATTEMPTS", "STATUS", "ENDED AS", "MS")
	for _, r := range records {
		t.AppendRow(table.Row{
			r.At().Local().Format(time.DateTime), r.RequestID(), r.Caller(), r.Contract().Model,
			route(r), orDash(r.Status()), ending(r), fmt.Sprintf("%.1f", ms(r.Elapsed())),
		})
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// route is a request's walk in one cell: the channels with what went wrong on each.
func route(r *engine.Record) string {
	var steps []string
	for _, a := range r.Attempts() {
		step := a.Channel()
		if a.Failed() {
			step += "(" + a.Class().String() + ")"
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		return "-"
	}
	return strings.Join(steps, " > ")
}

func ending(r *engine.Record) string {
	if r.Terminal() == engine.TerminalNone {
		return "running"
	}
	return r.Terminal().String()
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func ledgerShowCommand(e *env) *cobra.Command {
	var where ledgerFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show -c FILE ID", Short: "Show one request with all its attempts", Args: args(cobra.ExactArgs(1)),
		Long: "Show one request with all its attempts as a timeline. ID is the request id, or the\nbeginning of one that no other shares.",
		RunE: func(cmd *cobra.Command, list []string) error {
			r, err := where.open(e, "")
			if err != nil {
				return err
			}
			defer r.Close()
			return showRecord(cmd.Context(), e.stdout, r, list[0], asJSON)
		},
	}
	where.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the record as JSON")
	return cmd
}

func showRecord(ctx context.Context, w io.Writer, r *ledger.Reader, id string, asJSON bool) error {
	record, err := r.Get(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		_, err := w.Write(append(record.AppendJSON(nil), '\n'))
		return err
	}
	var others []engine.Disagreement
	for d, err := range r.Disagreements(ctx, ledger.DisagreementFilter{Of: record}) {
		if err != nil {
			return err
		}
		others = append(others, d)
	}
	slices.Reverse(others) // the oldest first, as attempts are
	return drawTimeline(w, record, others)
}
