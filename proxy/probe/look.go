package probe

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

// agent tells a provider who looks. There is no version in it: it is nobody's business.
const agent = "fourgate-health-check"

// look tests the way to a channel's provider within the group's time limit.
func (p *Prober) look(ctx context.Context, ch *engine.Channel) error {
	check, provider := ch.Group().HealthCheck(), ch.Provider()
	target, err := targetOf(provider)
	if err != nil {
		return err
	}
	request := upstream.Request{
		Method: "GET", Path: check.Path,
		Header: []engine.Header{{Name: "User-Agent", Value: agent}, {Name: "Accept", Value: "*/*"}, {Name: "Accept-Encoding", Value: "identity"}},
	}
	// The time on the wall: the deadline is one of a socket.
	a := p.options.Client.Start(target, &request, engine.Limits{}, time.Now().Add(check.Timeout))
	defer a.Close()
	defer context.AfterFunc(ctx, a.Cancel)()
	if check.Path == "" {
		return asError(a.Reach())
	}
	if err := a.Open(); err != nil {
		return err
	}
	if status := a.Status(); status >= 500 {
		return fmt.Errorf("cannot count GET %s as good: the answer is %d", check.Path, status)
	}
	return nil
}

// targetOf is the provider's host: a check's path doesn't begin at the base URL's.
func targetOf(p *engine.Provider) (*upstream.Target, error) {
	base, err := url.Parse(p.BaseURL())
	if err != nil {
		return nil, fmt.Errorf("cannot read the base URL of provider %q", p.Name())
	}
	root := url.URL{Scheme: base.Scheme, Host: base.Host}
	return upstream.NewTarget(root.String(), p.TLS())
}

// asError keeps a nil pointer from being an error.
func asError(err *upstream.Error) error {
	if err == nil {
		return nil
	}
	return err
}
