package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fourgate-dev/fourgate/hcl"
)

// adminFlags say where a running proxy's admin API is.
type adminFlags struct{ config, url string }

func (f *adminFlags) add(cmd *cobra.Command) {
	configFlag(cmd, &f.config)
	cmd.Flags().StringVar(&f.url, "admin", "", "the running proxy's admin listener, such as http://127.0.0.1:8081\n(default: server.admin_listen of the configuration)")
}

const (
	// adminTimeout bounds one question; the API answers from memory.
	adminTimeout = 10 * time.Second
	// maxAdminAnswer bounds an answer: a hundred thousand things set aside.
	maxAdminAnswer = 32 << 20
)

// adminClient asks a running proxy.
type adminClient struct {
	base  string
	token string
	http  http.Client
}

// client finds the admin listener and its token. Whoever asks needn't have the proxy's
// keys and policies at hand.
func (f *adminFlags) client(e *env) (*adminClient, error) {
	_, named, diags := hcl.LoadNamed(f.config, hcl.Environment{LookupEnv: e.lookup})
	if named.Server == nil {
		return nil, reported(e, diags)
	}
	base := strings.TrimSuffix(f.url, "/")
	if base == "" {
		var err error
		if base, err = adminURL(named.Server.AdminListen); err != nil {
			return nil, fmt.Errorf("cannot find the admin listener of %s: %w", f.config, err)
		}
	} else if !strings.Contains(base, "://") {
		return nil, usageError{fmt.Errorf("-admin is %q; write a URL such as http://127.0.0.1:8081", f.url)}
	}
	return &adminClient{base: base, token: named.Server.AdminToken.Reveal(), http: http.Client{
		Timeout: adminTimeout,
		// The token is for the proxy alone: for no forward proxy of the environment and for
		// no place that it might lead to.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// adminURL is how a listen address is reached from this machine.
func adminURL(listen string) (string, error) {
	if listen == "" {
		return "", errors.New(`there is none; write server { admin_listen = "127.0.0.1:8081" } and restart the proxy, or name one with -admin URL`)
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errors.New("its port is 0, any free one; name the one that serve has printed with -admin URL")
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if err == nil && ip.Is6() {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// get asks for path and decodes the answer.
func (c *adminClient) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

// post sends a change and decodes the answer.
func (c *adminClient) post(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, path, text, into)
}

func (c *adminClient) do(ctx context.Context, method, path string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("cannot ask the admin listener: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("cannot ask the admin listener: %w; is the proxy running, with this configuration?", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminAnswer))
	if err != nil {
		return fmt.Errorf("cannot read the answer of the admin listener at %s: %w", c.base, err)
	}
	if resp.StatusCode != http.StatusOK {
		var p struct {
			Detail string `json:"detail"`
		}
		if json.Unmarshal(text, &p) == nil && p.Detail != "" {
			return errors.New(p.Detail)
		}
		return fmt.Errorf("cannot ask the admin listener at %s: it answers %s; is this a Fourgate of this version?", c.base, cmp.Or(resp.Status, "nothing"))
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("cannot read the answer of the admin listener at %s: %w", c.base, err)
	}
	return nil
}
