package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/bundle"
)

// maxName bounds a policy file's path, and a bundle's revision, in bytes: decisions name the
// rule that made them, and logs the bundle.
const maxName = 256

// nameable says whether a text of a bundle can stand in logs and records.
func nameable(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
}

// Bundle is what a bundle holds. Its maps are the source's: readers share them.
type Bundle struct {
	// Modules are the Rego files by their path in the bundle, such as "gates/mine.rego".
	// Tests (*_test.rego) are left out.
	Modules map[string]string
	// Data is what its data files add to the document data. Numbers are json.Number.
	Data map[string]any
	// Revision is what the bundle's builder calls it, perhaps nothing.
	Revision string
	// Digest is the archive's, "sha256:" and 64 hexadecimal digits.
	Digest string
}

// ReadFile reads a bundle from a file. With a key it must be signed with that; with nil
// it is trusted like any other local file, and a signature isn't looked at.
func ReadFile(file string, key *Key) (Bundle, error) {
	verify := verifier{trusting: key == nil}
	if key != nil {
		var err error
		if verify, err = key.verifier(); err != nil {
			return Bundle{}, err
		}
	}
	raw, err := readBounded(file, DefaultMaxBytes)
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot read policy bundle %q: %w", file, err)
	}
	b, err := verify.read(raw, DefaultMaxBytes*unpackFactor)
	if err != nil {
		return Bundle{}, fmt.Errorf("cannot use policy bundle %q: %w", file, err)
	}
	return b, nil
}

func readBounded(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = tooLarge(limit)
	}
	return raw, err
}

func tooLarge(limit int64) error {
	return fmt.Errorf("it has more than the %d bytes that a bundle may have; leave out what the policy doesn't need", limit)
}

// read unpacks and verifies an archive with OPA's reader.
func (v verifier) read(raw []byte, unpacked int64) (Bundle, error) {
	if err := measure(raw, unpacked); err != nil {
		return Bundle{}, err
	}
	reader := opa.NewCustomReader(opa.NewTarballLoaderWithBaseURL(bytes.NewReader(raw), "").WithSizeLimitBytes(unpacked)).
		WithSizeLimitBytes(unpacked).
		WithRegoVersion(ast.RegoV1).
		WithBundleVerificationConfig(v.configuration()).
		WithSkipBundleVerification(v.trusting)
	read, err := reader.Read()
	if err != nil {
		return Bundle{}, explain(err)
	}
	return convert(&read, raw)
}

// measure refuses what isn't a whole archive of at most limit bytes unpacked. OPA bounds
// each file of an archive, but not all of them together; and what a file takes is what
// its header says, since an archive can leave out a file's empty parts.
func measure(raw []byte, limit int64) error {
	unpacking, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("it is no gzip archive (%w); \"opa build --bundle\" writes one", err)
	}
	bounded := &io.LimitedReader{R: unpacking, N: limit + 1}
	archive := tar.NewReader(bounded)
	var total int64
	for {
		header, err := archive.Next()
		if err == nil {
			total += min(header.Size, limit) + 1 // no sum of these overflows
		}
		switch {
		case bounded.N == 0 || total > limit:
			return fmt.Errorf("it has more than the %d bytes that a bundle may have unpacked", limit)
		case errors.Is(err, io.EOF):
			// What follows has to be whole, too: the checksum is at the end.
			if _, err := io.Copy(io.Discard, bounded); err != nil {
				return fmt.Errorf("its archive is damaged or incomplete: %w", err)
			}
			if bounded.N > 0 {
				return nil
			}
		case err != nil:
			return fmt.Errorf("its archive is damaged or incomplete: %w", err)
		}
	}
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// convert takes what a policy is made of, and refuses what one can't be made of.
func convert(read *opa.Bundle, raw []byte) (Bundle, error) {
	switch {
	case read.Type() == opa.DeltaBundleType:
		return Bundle{}, errors.New("it is a delta bundle, which can't be signed; publish a whole one")
	case len(read.WasmModules) > 0 || len(read.PlanModules) > 0:
		return Bundle{}, errors.New("it holds a compiled policy (WebAssembly or a plan), which nobody would read; build it with the target rego")
	case read.Manifest.RegoVersion != nil && *read.Manifest.RegoVersion != 1, len(read.Manifest.FileRegoVersions) > 0 && !allV1(read.Manifest.FileRegoVersions):
		return Bundle{}, errors.New("its manifest says that it is written in Rego v0; build it without --v0-compatible")
	case !nameable(read.Manifest.Revision):
		return Bundle{}, fmt.Errorf("its revision is %.*q; build it with a --revision of up to %d printable characters", maxName, read.Manifest.Revision, maxName)
	}
	b := Bundle{Modules: map[string]string{}, Data: read.Data, Revision: read.Manifest.Revision, Digest: digestOf(raw)}
	for _, m := range read.Modules {
		name := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(m.RelativePath)), "/")
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		if !nameable(name) {
			return Bundle{}, fmt.Errorf("it has a file with the name %.*q; a name has up to %d printable characters", maxName, name, maxName)
		}
		if _, twice := b.Modules[name]; twice {
			return Bundle{}, fmt.Errorf("it has two files with the name %q", name)
		}
		b.Modules[name] = string(m.Raw)
	}
	if len(b.Modules) == 0 {
		return Bundle{}, errors.New("it holds no .rego file, so there is no policy in it")
	}
	return b, nil
}

func allV1(versions map[string]int) bool {
	for _, v := range versions {
		if v != 1 {
			return false
		}
	}
	return true
}

// explain adds to OPA's own words what to do.
func explain(err error) error {
	for _, known := range []struct{ words, advice string }{
		{"missing .signatures.json", "it isn't signed; build it with --signing-key, or sign it with \"opa sign\""},
		{"failed to verify JWT signature", "it isn't signed with the key that belongs to public_key"},
		{"verification key corresponding to ID", "its signature names another key than key_id"},
		{"verification key ID is empty", "its signature names no key; leave key_id out, or sign it with a key's name"},
		{"scope mismatch", "it is signed for another use"},
		{"not included in bundle signature", "it was changed after it was signed"},
		{"digest mismatch", "it was changed after it was signed"},
		{"specified in bundle signatures but not found", "it was changed after it was signed"},
		{"delta bundles do not support", "publish a whole bundle, not a delta"},
	} {
		if strings.Contains(err.Error(), known.words) {
			return fmt.Errorf("%s (%w)", known.advice, err)
		}
	}
	return err
}
