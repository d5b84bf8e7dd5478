package bundle

import (
	"context"
	"encoding/json"
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
// the server that long to wait for a new one. One downloader makes one download: nothing of a
// failed one is left for the next.
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
	if p.place.isOCI() {
		// Its downloader would panic if it couldn't make its store.
		if err := os.MkdirAll(filepath.Join(store, "blobs"), 0o700); err != nil {
			return answer{lost: fmt.Errorf("cannot make a place for its layers: %w", err)}
		}
		d := download.NewOCI(config, client, p.place.ref, store).WithCallback(note).
			WithBundleVerificationConfig(p.verify.config).WithSizeLimitBytes(unpacked).WithBundleParserOpts(options)
		d.SetCache(known.etag)
		err = d.Trigger(whole)
	} else {
		if seconds := int64(wait / time.Second); seconds > 0 {
			config.Polling.LongPollingTimeoutSeconds = &seconds
		}
		d := download.New(config, client, p.place.path).WithCallback(note).
			WithBundleVerificationConfig(p.verify.config).WithSizeLimitBytes(unpacked).WithBundleParserOpts(options)
		d.SetCache(known.etag)
		err = d.Trigger(whole)
	}
	a := answer{etag: c.etag, patient: c.patient}
	if err != nil {
		if reason, refused := c.failure(err); refused {
			a.refused = reason
		} else {
			a.lost = reason
		}
		return a
	}
	if p.place.isOCI() {
		a.etag = update.ETag // the layer's digest
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
