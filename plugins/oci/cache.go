package oci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
)

// cache keeps blobs in a directory by their digest. It is never trusted: what is read
// from it is verified as what comes from a registry.
type cache struct{ dir string }

func (c cache) path(d digest.Digest) string {
	return filepath.Join(c.dir, d.Algorithm().String(), d.Encoded())
}

// get returns the blob of the given digest with at most limit bytes, from the directory
// or from open.
func (c cache) get(want digest.Digest, limit int64, open func() (io.ReadCloser, error)) ([]byte, error) {
	if c.dir != "" {
		if f, err := os.Open(c.path(want)); err == nil {
			if blob, err := readVerified(f, want, limit); err == nil {
				return blob, nil
			}
			// It was damaged: fetch it again.
		}
	}
	body, err := open()
	if err != nil {
		return nil, err
	}
	blob, err := readVerified(body, want, limit)
	if err != nil {
		return nil, err
	}
	if c.dir != "" {
		if err := c.put(want, blob); err != nil {
			return nil, err
		}
	}
	return blob, nil
}

// readVerified reads a blob to its end, closes it and compares its digest.
func readVerified(body io.ReadCloser, want digest.Digest, limit int64) (blob []byte, err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	blob, err = io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(blob)) > limit {
		return nil, fmt.Errorf("it has more than the %d bytes that it may have", limit)
	}
	if got := digest.FromBytes(blob); got != want {
		return nil, fmt.Errorf("its bytes have the digest %s, not %s", got, want)
	}
	return blob, nil
}

// put writes a blob so that another process never sees half of it.
func (c cache) put(d digest.Digest, blob []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot keep it in the cache %q: %w; name a directory that can be written, or none", c.dir, err)
		}
	}()
	path := c.path(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(blob))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
