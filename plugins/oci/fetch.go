package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const (
	// ArtifactType is the type of a manifest that holds a classifier.
	ArtifactType = "application/vnd.fourgate.classifier.v1"
	// LayerType is the media type of the module in it.
	LayerType = "application/wasm"
)

const (
	// DefaultTimeout bounds a whole fetch: two small answers, perhaps after a token's.
	DefaultTimeout = 30 * time.Second
	// maxManifest is far above what one layer and some annotations need.
	maxManifest = 64 << 10
)

// Options say how to fetch. MaxBytes is needed.
type Options struct {
	// CacheDir keeps what was fetched, by digest. Empty keeps nothing.
	CacheDir string
	// MaxBytes is the most bytes that a module may have.
	MaxBytes int64
	// Timeout bounds a whole fetch; 0 means [DefaultTimeout].
	Timeout time.Duration
}

// Fetch returns the module of an artifact. Its bytes have the digest that the manifest
// gives, and the manifest has the reference's.
func Fetch(ctx context.Context, ref Reference, o Options) ([]byte, error) {
	module, err := fetch(ctx, ref, o)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", ref, err)
	}
	return module, nil
}

func fetch(ctx context.Context, ref Reference, o Options) ([]byte, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("it took longer than %v", o.Timeout))
	defer cancel()
	from, err := newSource(ref)
	if err != nil {
		return nil, err
	}
	blobs := cache{dir: o.CacheDir}

	text, err := blobs.get(ref.Digest, maxManifest, func() (io.ReadCloser, error) { return from.manifest(ctx, ref.Digest) })
	if err != nil {
		return nil, explain(ctx, "its manifest", err)
	}
	layer, err := layerOf(text)
	if err != nil {
		return nil, err
	}
	if layer.Size > o.MaxBytes || layer.Size < 0 {
		return nil, fmt.Errorf("its module has %d bytes; the limit is %d", layer.Size, o.MaxBytes)
	}
	module, err := blobs.get(layer.Digest, layer.Size, func() (io.ReadCloser, error) { return from.blob(ctx, layer) })
	if err != nil {
		return nil, explain(ctx, "its module", err)
	}
	return module, nil
}

// explain says what a person can do about a failed fetch.
func explain(ctx context.Context, what string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case errors.Is(err, errdef.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is not there; check the name and the digest (%w)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// layerOf reads a manifest and returns the one layer of a classifier.
func layerOf(text []byte) (ocispec.Descriptor, error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("its manifest is no JSON: %w", err)
	}
	switch {
	case m.MediaType != "" && m.MediaType != ocispec.MediaTypeImageManifest:
		return ocispec.Descriptor{}, fmt.Errorf("it is a %q; use the digest of the image manifest itself", m.MediaType)
	case m.ArtifactType != ArtifactType:
		return ocispec.Descriptor{}, fmt.Errorf("its artifact type is %q; a classifier has %q", m.ArtifactType, ArtifactType)
	case len(m.Layers) != 1 || m.Layers[0].MediaType != LayerType:
		return ocispec.Descriptor{}, fmt.Errorf("it should have one layer of the type %q and has %d layers", LayerType, len(m.Layers))
	case m.Layers[0].Digest.Validate() != nil || m.Layers[0].Digest.Algorithm() != digest.SHA256:
		return ocispec.Descriptor{}, errors.New("its layer has no SHA-256 digest")
	}
	return m.Layers[0], nil
}

// source is where an artifact's manifest and its layer come from.
type source struct {
	manifest func(context.Context, digest.Digest) (io.ReadCloser, error)
	blob     func(context.Context, ocispec.Descriptor) (io.ReadCloser, error)
}

func newSource(ref Reference) (source, error) {
	if ref.Layout != "" {
		storage := oci.NewStorageFromFS(os.DirFS(ref.Layout))
		return source{
			manifest: func(ctx context.Context, d digest.Digest) (io.ReadCloser, error) {
				return storage.Fetch(ctx, ocispec.Descriptor{Digest: d})
			},
			blob: storage.Fetch,
		}, nil
	}
	repository, err := remote.NewRepository(ref.Registry + "/" + ref.Repository)
	if err != nil {
		return source{}, err
	}
	repository.PlainHTTP = isLoopback(ref.Registry)
	repository.MaxMetadataBytes = maxManifest
	// A client of its own: nothing is shared with the calls to providers, a registry is
	// asked once and not again and again, and its connections go with it.
	repository.Client = &auth.Client{Client: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
	}}}
	return source{
		manifest: func(ctx context.Context, d digest.Digest) (io.ReadCloser, error) {
			_, body, err := repository.Manifests().FetchReference(ctx, d.String())
			return body, err
		},
		blob: repository.Blobs().Fetch,
	}, nil
}
