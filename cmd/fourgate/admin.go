package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

func adminCommand(e *env) *cobra.Command {
	return group("admin", "Show and change what a running proxy has set aside",
		adminStandingCommand(e), adminResetCommand(e), adminDisableCommand(e), adminEnableCommand(e))
}

// standingAnswer is what the API says of the standing.
type standingAnswer struct {
	At    time.Time      `json:"at"`
	Aside []ledger.Aside `json:"aside"`
}

func adminStandingCommand(e *env) *cobra.Command {
	var where adminFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "standing -c FILE", Short: "Show what is set aside now: breakers, keys, channels, models", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := where.client(e)
			if err != nil {
				return err
			}
			var a standingAnswer
			if err := client.get(cmd.Context(), "/api/standing", &a); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(e.stdout).Encode(a)
			}
			return drawAsides(e.stdout, a.Aside, a.At, "ENDS IN", "nothing is set aside")
		},
	}
	where.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// resetQuestion is what the API is asked to lift.
type resetQuestion struct {
	All      bool   `json:"all,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Group    string `json:"group,omitempty"`
	Channel  string `json:"channel,omitempty"`
	Provider string `json:"provider,omitempty"`
	Key      string `json:"key,omitempty"`
	Model    string `json:"model,omitempty"`
}

type liftedAnswer struct {
	Lifted []ledger.Aside `json:"lifted"`
}

func adminResetCommand(e *env) *cobra.Command {
	var where adminFlags
	var q resetQuestion
	var asJSON bool
	cmd := &cobra.Command{
		Use: "reset -c FILE -all | [-kind KIND] [-group NAME] [-channel NAME] [-provider NAME] [-key NAME] [-model NAME]", Short: "Put back what fits all that is named",
		Long: "Put back what fits all that is named. KIND is breaker_open, key_cooled, channel_quarantined,\nmodel_evicted or channel_disabled. A breaker that is reset is closed and has counted nothing.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (q == resetQuestion{}) {
				return usageError{errors.New("name what to put back, or write -all")}
			}
			client, err := where.client(e)
			if err != nil {
				return err
			}
			var a liftedAnswer
			if err := client.post(cmd.Context(), "/api/standing/reset", q, &a); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(e.stdout).Encode(a)
			}
			if len(a.Lifted) > 0 {
				fmt.Fprintln(e.stdout, "put back what was set aside:")
			}
			return drawAsides(e.stdout, a.Lifted, e.now(), "WOULD HAVE ENDED IN", "nothing that fits was set aside")
		},
	}
	where.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&q.All, "all", false, "put back everything")
	flags.StringVar(&q.Kind, "kind", "", "only of this kind")
	flags.StringVar(&q.Group, "group", "", "only of this route group")
	flags.StringVar(&q.Channel, "channel", "", "only of channels of this name")
	flags.StringVar(&q.Provider, "provider", "", "only keys of this provider")
	flags.StringVar(&q.Key, "key", "", "only keys of this name")
	flags.StringVar(&q.Model, "model", "", "only this model")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func adminDisableCommand(e *env) *cobra.Command {
	var where adminFlags
	var length time.Duration
	cmd := &cobra.Command{
		Use: "disable -c FILE [-for TIME] GROUP/CHANNEL", Short: "Take a channel out by hand; its requests under way end as they would have",
		Long: "Take a channel out by hand, on this instance, until it is enabled or the time is over. Its\nrequests under way end as they would have, so it drains. A reload doesn't put it back, a\nrestart does.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, list []string) error {
			path, err := channelPath(list[0])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("for") && length <= 0 {
				return usageError{fmt.Errorf("-for is %v; write a time such as 30m, or leave it out to disable the channel until it is enabled", length)}
			}
			client, err := where.client(e)
			if err != nil {
				return err
			}
			var q struct {
				For string `json:"for,omitempty"`
			}
			if length != 0 {
				q.For = length.String()
			}
			var a struct {
				Aside   ledger.Aside `json:"aside"`
				Warning string       `json:"warning"`
			}
			if err := client.post(cmd.Context(), path+"/disable", q, &a); err != nil {
				return err
			}
			until := "until it is enabled"
			if a.Aside.Until != nil {
				until = "until " + a.Aside.Until.Local().Format(time.DateTime)
			}
			fmt.Fprintf(e.stdout, "%s/%s is disabled %s\n", a.Aside.Group, a.Aside.Channel, until)
			if a.Warning != "" {
				fmt.Fprintf(e.stderr, "fourgate: warning: %s\n", a.Warning)
			}
			return nil
		},
	}
	where.add(cmd)
	cmd.Flags().DurationVar(&length, "for", 0, "how long, such as 30m (default: until it is enabled)")
	return cmd
}

func adminEnableCommand(e *env) *cobra.Command {
	var where adminFlags
	cmd := &cobra.Command{
		Use: "enable -c FILE GROUP/CHANNEL", Short: "Put a channel back that was taken out by hand", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, list []string) error {
			path, err := channelPath(list[0])
			if err != nil {
				return err
			}
			client, err := where.client(e)
			if err != nil {
				return err
			}
			var a liftedAnswer
			if err := client.post(cmd.Context(), path+"/enable", struct{}{}, &a); err != nil {
				return err
			}
			if len(a.Lifted) == 0 {
				fmt.Fprintf(e.stdout, "%s was not disabled\n", list[0])
				return nil
			}
			fmt.Fprintf(e.stdout, "%s is enabled\n", list[0])
			return nil
		},
	}
	where.add(cmd)
	return cmd
}

// channelPath is the place of a channel in the API.
func channelPath(name string) (string, error) {
	group, channel, ok := strings.Cut(name, "/")
	if !ok || group == "" || channel == "" {
		return "", usageError{fmt.Errorf("cannot read channel %q; write GROUP/CHANNEL", name)}
	}
	return "/api/channels/" + url.PathEscape(group) + "/" + url.PathEscape(channel), nil
}

// drawAsides draws what is or was set aside, under the head ends when it ends or would
// have ended, or says none.
func drawAsides(w io.Writer, list []ledger.Aside, now time.Time, ends, none string) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := newTable("KIND", "WHAT", ends, "NOTE")
	for _, a := range list {
		end := "by hand"
		switch {
		case a.Until != nil:
			end = max(a.Until.Sub(now), 0).Round(time.Second).String()
		case a.HalfOpen:
			end = "when probes pass"
		}
		t.AppendRow(table.Row{a.Kind, asideName(a), end, asideNote(a)})
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

// asideName is what is set aside, in one word.
func asideName(a ledger.Aside) string {
	if a.Key != "" {
		return a.Provider + "/" + a.Key
	}
	if a.Model != "" {
		return a.Group + "/" + a.Channel + " " + a.Model
	}
	return a.Group + "/" + a.Channel
}

func asideNote(a ledger.Aside) string {
	var notes []string
	if a.HalfOpen {
		notes = append(notes, "half open")
	}
	if a.Caller != "" {
		notes = append(notes, "for caller "+a.Caller+" alone")
	}
	if a.Abroad {
		notes = append(notes, "told by another instance")
	}
	return strings.Join(notes, ", ")
}

// asidesText is a list in one line.
func asidesText(list []ledger.Aside) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.Kind + " " + asideName(a)
	}
	return strings.Join(words, ", ")
}
