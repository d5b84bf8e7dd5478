package bundle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// keptFile is where the last good bundle of a URL is. URLs have files of their own, so
// that a new one never brings back an old policy, and sources can share a directory.
func keptFile(dir, url string) string {
	return filepath.Join(dir, "bundle-"+digestETag(digestOf([]byte(url)))[:16]+".tar.gz")
}

// keep writes an archive so that there is a whole one at any moment, also after a crash.
func keep(file string, raw []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".bundle-*") // with the mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// kept reads the last good bundle and verifies it like one that has just come.
func (p *prepared) kept() (Bundle, error) {
	if p.Cache == "" {
		return Bundle{}, errors.New("no last good one is kept; name a directory as cache")
	}
	file := keptFile(p.Cache, p.URL)
	raw, err := readBounded(file, p.MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return Bundle{}, fmt.Errorf("there is no last good one in %q yet", p.Cache)
	}
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot read the last good one: %w", err)
	}
	b, err := p.verify.read(raw, p.MaxBytes*unpackFactor)
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot use the last good one %q: %w", file, err)
	}
	return b, nil
}
