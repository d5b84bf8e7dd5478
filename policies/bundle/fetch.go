package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/download"
	"github.com/open-policy-agent/opa/v1/logging"
	"github.com/open-policy-agent/opa/v1/plugins/rest"
)

// answer is what a download brought: a bundle, or the word that there is no new one, or
// the reason why not.
type answer struct {
	bundle  Bundle
	raw     []byte // the bundle's archive; nil if there is no new one
	etag    string
	patient bool  // the server can hold its answer back
	lost    error // no answer
	refused error // an answer that is no bundle
}

// fetch downloads the bundle unless it is the one that is known by its ETag, and gives
// the server that long to wait for a new one. A downloader makes one download: nothing
// of a failed one is left for the next.
func (p *prepared) fetch(ctx context.Context, store string, known seen, wait time.Duration) answer {
	limit := p.Timeout + wait
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %v", limit))
	defer cancel()
	defer p.base.CloseIdleConnections()
	c := &carrier{prepared: p, ctx: ctx, patient: known.patient}
	client, err := p.client(c)
	if err != nil {
		return answer{lost: err}
	}
	var update download.Update
	note := func(_ context.Context, u download.Update) error {
		update = u
		return nil
	}
	unpacked := p.MaxBytes * unpackFactor
	options := ast.ParserOptions{RegoVersion: ast.RegoV1}
	// A context that can't be cancelled: with another one Trigger returns at once and its
	// goroutine goes on. The carrier cancels the requests.
	whole := context.WithoutCancel(ctx)
	var config download.Config
	var failed error
	if p.place.isOCI() {
		d, err := newOCI(config, client, p.place.ref, store)
		if err != nil {
			return answer{lost: err}
		}
		d = d.WithCallback(note).WithBundleVerificationConfig(p.verify.configuration()).WithSizeLimitBytes(unpacked).WithBundleParserOpts(options)
		d.SetCache(known.etag)
		failed = d.Trigger(whole)
	} else {
		if seconds := int64(wait / time.Second); seconds > 0 {
			config.Polling.LongPollingTimeoutSeconds = &seconds
		}
		d := download.New(config, client, p.place.path).WithCallback(note).
			WithBundleVerificationConfig(p.verify.configuration()).WithSizeLimitBytes(unpacked).WithBundleParserOpts(options)
		d.SetCache(known.etag)
		failed = d.Trigger(whole)
	}
	a := answer{etag: c.etag, patient: c.patient}
	if p.place.isOCI() {
		a.etag = update.ETag // the layer's digest, if all went well
	}
	if failed != nil {
		if reason, refused := c.failure(failed); refused {
			a.refused = reason
		} else {
			a.lost = reason
		}
		return a
	}
	if update.Bundle == nil {
		return a
	}
	a.raw = c.raw
	if p.place.isOCI() {
		// The last answer of a registry may be another layer, or none if it is known.
		if a.raw, err = os.ReadFile(filepath.Join(store, "blobs", "sha256", update.ETag)); err != nil {
			a.raw, a.lost = nil, err
			return a
		}
	}
	a.bundle, a.refused = convert(update.Bundle, a.raw)
	return a
}

// client returns OPA's client with the carrier as its transport.
func (p *prepared) client(c *carrier) (rest.Client, error) {
	const plugin = "fourgate"
	config, err := json.Marshal(map[string]any{
		"name": plugin,
		"url":  p.place.scheme + "://" + p.place.host,
		// The carrier bounds the whole download.
		"response_header_timeout_seconds": 0,
		"credentials":                     map[string]any{"plugin": plugin},
	})
	if err != nil {
		return rest.Client{}, err
	}
	return rest.New(config, nil, rest.Logger(logging.NewNoOpLogger()),
		rest.AuthPluginLookup(func(string) rest.HTTPAuthPlugin { return c }))
}

// newOCI returns OPA's downloader for a registry. That panics if it can't use its store,
// which a full disk is enough for. The store is thrown away then: the next try makes it
// afresh.
func newOCI(config download.Config, client rest.Client, ref, store string) (d *download.OCIDownloader, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.Join(fmt.Errorf("cannot make a place for its layers: %v; free some of the disk of the directory for temporary files", reason),
				os.RemoveAll(store))
		}
	}()
	return download.NewOCI(config, client, ref, store), nil
}

// makeStore makes the directory of a registry's layers where temporary files go, or
// beside the last good bundle where nothing else can be written.
func (p *prepared) makeStore() (string, error) {
	const pattern = "fourgate-bundle-*"
	store, err := os.MkdirTemp("", pattern)
	if err != nil && p.Cache != "" && !p.KeepsNothing {
		if os.MkdirAll(p.Cache, 0o700) == nil {
			store, err = os.MkdirTemp(p.Cache, pattern)
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot make a place for the layers of policy bundle %s: %w; set TMPDIR to a directory that can be written", p.place.shown, err)
	}
	return store, nil
}

// tidy empties a registry's store once it holds more than a few bundles. It only saves
// downloading what is unchanged, and OPA never removes anything from it.
func tidy(store string, limit int64) error {
	var size int64
	err := filepath.WalkDir(store, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil || size <= limit {
		return err
	}
	return os.RemoveAll(store)
}

// digestETag is what OPA's registry downloader has in the place of an ETag.
func digestETag(digest string) string { return strings.TrimPrefix(digest, "sha256:") }
