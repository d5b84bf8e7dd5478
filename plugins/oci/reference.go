package oci

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
)

// The beginnings of references.
const (
	RegistryPrefix = "oci://"
	LayoutPrefix   = "oci-layout://"
)

// Reference names one artifact by its digest.
type Reference struct {
	Registry   string // host, perhaps with a port; empty for a layout
	Repository string
	Layout     string        // the path of a directory in the OCI image layout
	Digest     digest.Digest // of the manifest, SHA-256
}

// IsReference says whether a text is meant as a reference, right or wrong.
func IsReference(text string) bool {
	return strings.HasPrefix(text, RegistryPrefix) || strings.HasPrefix(text, LayoutPrefix)
}

// Parse reads "oci://REGISTRY/REPOSITORY@sha256:HEX" or "oci-layout://PATH@sha256:HEX",
// where an absolute path makes three slashes.
func Parse(text string) (Reference, error) {
	wrap := func(err error) error { return fmt.Errorf("cannot read reference %q: %w", text, err) }
	rest, layout := strings.CutPrefix(text, LayoutPrefix)
	if !layout {
		var ok bool
		if rest, ok = strings.CutPrefix(text, RegistryPrefix); !ok {
			return Reference{}, wrap(errors.New(`it begins neither with "oci://" nor with "oci-layout://"`))
		}
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return Reference{}, wrap(errors.New("it has no digest; a tag can be moved, so write …@sha256: and the digest of the manifest"))
	}
	place, sum := rest[:at], digest.Digest(rest[at+1:])
	if err := sum.Validate(); err != nil || sum.Algorithm() != digest.SHA256 {
		return Reference{}, wrap(errors.New("its digest should be sha256: and 64 hexadecimal digits"))
	}
	if layout {
		if place == "" {
			return Reference{}, wrap(errors.New("it names no directory"))
		}
		return Reference{Layout: place, Digest: sum}, nil
	}
	parsed, err := registry.ParseReference(place)
	if err != nil {
		return Reference{}, wrap(errors.New("it should be oci://REGISTRY/REPOSITORY@sha256:…, the repository in lower case"))
	}
	if parsed.Reference != "" {
		return Reference{}, wrap(fmt.Errorf("it has the tag %q beside its digest; leave the tag out", parsed.Reference))
	}
	return Reference{Registry: parsed.Registry, Repository: parsed.Repository, Digest: sum}, nil
}

// String is the reference as [Parse] reads it.
func (r Reference) String() string {
	if r.Layout != "" {
		return LayoutPrefix + r.Layout + "@" + r.Digest.String()
	}
	return RegistryPrefix + r.Registry + "/" + r.Repository + "@" + r.Digest.String()
}

// isLoopback says whether a registry is on this machine, where plain HTTP is spoken.
func isLoopback(registry string) bool {
	host := registry
	if h, _, err := net.SplitHostPort(registry); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}
