package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/plugins/rest"
)

// carrier carries the requests of one download for OPA's downloaders, as their
// transport. They bound neither what comes in nor what it unpacks to, can't be cancelled
// without leaving a goroutine behind, and tell a refused bundle from a lost connection
// by its words alone; the carrier does all that. A registry is asked from several
// goroutines, which are all done when OPA's call returns.
type carrier struct {
	*prepared
	// ctx is the download's. It is stored because OPA is between whoever cancels and
	// the requests, and this value lives no longer than the call that has the context.
	ctx context.Context

	mu       sync.Mutex // guards the rest during the call
	received int64      // bytes of all answers

	raw     []byte // the last answer with the status 200
	status  int    // of the last answer, 0 without one; an error's stays, but for a missing token
	etag    string // of the last answer
	patient bool   // the last answer said that the server can hold answers back
	trouble error  // no answer came, or not all of it
	refusal error  // what came can't be a bundle
}

// NewClient implements [rest.HTTPAuthPlugin].
func (c *carrier) NewClient(rest.Config) (*http.Client, error) {
	return &http.Client{Transport: c}, nil
}

// Prepare implements [rest.HTTPAuthPlugin]. RoundTrip sees each request, redirected ones
// too, so it is there that the token is shown or not.
func (c *carrier) Prepare(*http.Request) error { return nil }

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(original *http.Request) (*http.Response, error) {
	if c.place.scheme == "https" && original.URL.Scheme != "https" {
		return nil, c.lost(fmt.Errorf("it leads to %s, which is not https", original.URL.Host))
	}
	request := original.Clone(c.ctx)
	if own := c.authorization(); own != "" {
		switch sent := request.Header.Get("Authorization"); {
		case sent != "" && sent != own: // a token that the registry has given
		case c.mayShow(request):
			request.Header.Set("Authorization", own)
		default:
			request.Header.Del("Authorization")
		}
	}
	if prefer := request.Header.Get("Prefer"); prefer != "" {
		request.Header.Set("Prefer", strings.Replace(prefer, "snapshot,delta", "snapshot", 1))
	}
	response, err := c.base.RoundTrip(request)
	if err != nil {
		return nil, c.lost(err)
	}
	if err := c.checkPinned(response); err != nil {
		_ = response.Body.Close()
		return nil, c.refuse(err)
	}
	if response.StatusCode != http.StatusOK {
		// What an error says is nobody's business, and may never end.
		_ = response.Body.Close()
		response.Body = http.NoBody
		c.note(response, nil)
		return response, nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, c.MaxBytes+1))
	_ = response.Body.Close()
	switch total := c.note(response, raw); {
	case err != nil:
		return nil, c.lost(fmt.Errorf("its answer was cut off: %w", err))
	case total > c.MaxBytes:
		return nil, c.refuse(tooLarge(c.MaxBytes))
	case !c.place.isOCI() || bytes.HasPrefix(raw, gzipMagic):
		if err := measure(raw, c.MaxBytes*unpackFactor); err != nil {
			return nil, c.refuse(err)
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(raw))
	return response, nil
}

// note keeps what an answer says, and returns how many bytes have come in all.
func (c *carrier) note(response *http.Response, raw []byte) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status < http.StatusBadRequest || c.status == http.StatusUnauthorized {
		c.status = response.StatusCode
	}
	c.etag = response.Header.Get("ETag")
	if response.StatusCode == http.StatusOK {
		c.raw, c.patient = raw, response.Header.Get("Content-Type") == bundleType
	}
	c.received += int64(len(raw))
	return c.received
}

// bundleType is what a server calls a bundle if it can hold its answer back.
const bundleType = "application/vnd.openpolicyagent.bundles"

// gzipMagic tells a layer from the manifest and the configuration of an OCI artifact.
var gzipMagic = []byte{0x1f, 0x8b}

// lost notes that no whole answer came.
func (c *carrier) lost(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		err = cause
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
	return err
}

// refuse notes that an answer can't be a bundle.
func (c *carrier) refuse(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = err
	return err
}

// authorization is what shows the token.
func (c *carrier) authorization() string {
	if c.Token.Empty() {
		return ""
	}
	token := c.Token.Reveal()
	if user, password, both := strings.Cut(token, ":"); both && c.place.isOCI() {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	return "Bearer " + token
}

// mayShow says whether the token is for whom a request goes to: the server of the URL,
// or the place where its registry gives out tokens for a user and a password. A redirect
// elsewhere doesn't get it.
func (c *carrier) mayShow(r *http.Request) bool {
	if r.URL.Scheme == c.place.scheme && r.URL.Host == c.place.host {
		return true
	}
	return c.place.isOCI() && strings.Contains(c.Token.Reveal(), ":") && r.Response == nil &&
		r.URL.Scheme == "https" && !strings.HasPrefix(r.URL.Path, "/v2/")
}

// checkPinned makes sure that a registry which is asked for a digest answers with that
// one: OPA's downloader believes its word.
func (c *carrier) checkPinned(response *http.Response) error {
	_, asked, pinned := strings.Cut(response.Request.URL.Path, "/manifests/sha256:")
	if !pinned || !c.place.isOCI() || response.Request.Method != http.MethodHead || response.StatusCode != http.StatusOK {
		return nil // an answer to GET is compared with the digest
	}
	if got := response.Header.Get("Docker-Content-Digest"); got != "sha256:"+asked {
		return fmt.Errorf("its registry was asked for sha256:%s and answered with %q", asked, got)
	}
	return nil
}

// failure says in one line why a download failed, and whether that is the bundle's fault
// (or else that of the way to it).
func (c *carrier) failure(err error) (reason error, refused bool) {
	var request *url.Error
	switch {
	case c.refusal != nil:
		return explain(c.refusal), true
	case c.trouble != nil:
		return c.trouble, false
	case errors.As(err, &request):
		return request.Err, false // the URL's query may be a credential
	case c.status == http.StatusUnauthorized || c.status == http.StatusForbidden:
		return fmt.Errorf("its server replied with %d %s; check token", c.status, http.StatusText(c.status)), false
	case c.status == http.StatusNotFound:
		return fmt.Errorf("its server replied with %d %s; check url", c.status, http.StatusText(c.status)), false
	case c.status == 0:
		return err, false
	case c.status != http.StatusOK:
		return fmt.Errorf("its server replied with %d %s", c.status, http.StatusText(c.status)), false
	}
	return explain(err), true
}
