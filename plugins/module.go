package plugins

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/plugins/oci"
)

// BuiltinPrefix begins the source of a classifier that is part of Fourgate.
const BuiltinPrefix = "builtin:"

// Module says which classifier to load and what it may use.
type Module struct {
	Name   string // in errors
	Source string // "builtin:openai", a reference as package oci reads it, or the path of a .wasm file
	// SHA256 is the digest of the module's bytes in hexadecimal. It may be empty for
	// built-in modules, and for references, which have one in them.
	SHA256 string
	// Profile is [ProfileWASI] for a module that needs WASI; empty for any other.
	Profile string
	// Timeout is the time for one classification; 0 means [DefaultTimeout].
	Timeout time.Duration
	// MemoryBytes is the most memory that one instance may have; 0 means
	// [DefaultMemoryBytes].
	MemoryBytes int64
	// Shadow is a candidate that is asked about the same failures and decides nothing. Its
	// name and its memory are this module's, and its timeout too if it has none. Nil means
	// none.
	Shadow *Module
}

//go:embed builtin/*/*.wasm
var builtins embed.FS

// Builtins returns the names of the built-in classifiers, without the prefix.
func Builtins() []string {
	entries, err := builtins.ReadDir("builtin")
	if err != nil {
		panic("BUG: the built-in classifiers are not embedded: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// read returns the module's bytes and their digest, which has been compared with the
// pinned one. What is fetched from a registry is kept in the directory kept.
func (m Module) read(ctx context.Context, kept string) (binary []byte, digest string, err error) {
	if oci.IsReference(m.Source) {
		ref, err := oci.Parse(m.Source)
		if err != nil {
			return nil, "", err
		}
		if binary, err = oci.Fetch(ctx, ref, oci.Options{CacheDir: kept, MaxBytes: maxFileBytes}); err != nil {
			return nil, "", err
		}
	} else if name, ok := strings.CutPrefix(m.Source, BuiltinPrefix); ok {
		binary, err = builtins.ReadFile("builtin/" + name + "/" + name + ".wasm")
		if err != nil {
			return nil, "", fmt.Errorf("there is no built-in classifier %q; use one of %s", name, strings.Join(Builtins(), ", "))
		}
	} else {
		if m.SHA256 == "" {
			return nil, "", fmt.Errorf("the module %q is not pinned; set sha256 to its digest (sha256sum prints it)", m.Source)
		}
		if binary, err = readFile(m.Source, maxFileBytes); err != nil {
			return nil, "", err
		}
	}
	sum := sha256.Sum256(binary)
	digest = hex.EncodeToString(sum[:])
	if m.SHA256 != "" && !strings.EqualFold(m.SHA256, digest) {
		return nil, "", fmt.Errorf("the module %q has the SHA-256 digest %s, not the pinned %s; if the change is meant, pin the new digest", m.Source, digest, m.SHA256)
	}
	return binary, digest, nil
}

// maxFileBytes is the size of the largest file that any profile allows.
const maxFileBytes = 16 << 20

// readFile reads a module's file and no more of it than a module may have. It opens regular
// files only: to open a pipe waits for who writes it, and a device has no end.
func readFile(path string, most int64) (data []byte, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read module: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("cannot read module %q: it is a directory; name the .wasm file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("cannot read module %q: it is no regular file; name a .wasm file", path)
	case info.Size() > most:
		return nil, tooLarge(path, most)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read module: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read module %q: %w", path, err)
	case int64(len(data)) > most: // it grew meanwhile
		return nil, tooLarge(path, most)
	}
	return data, nil
}

func tooLarge(path string, most int64) error {
	return fmt.Errorf("cannot read module %q: it has more than %d bytes, the most that a module may have", path, most)
}
