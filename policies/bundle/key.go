package bundle

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"
)

// anyKey is the name under which a key without a name of its own is looked up.
const anyKey = "key"

// minRSABits is what NIST SP 800-57 asks for since 2014.
const minRSABits = 2048

// Key is the public key that a bundle's signature is verified with. A shared secret is
// no choice: whoever can check a bundle could then also write one.
type Key struct {
	// PEM is a public key or a certificate in PEM form.
	PEM string
	// Algorithm is RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or ES512. Empty
	// means RS256 for an RSA key, and the one of its curve for another.
	Algorithm string
	// ID is the name that a signature must give to its key; empty takes any.
	ID string
	// Scope is what a signature must say that it is for; empty takes one that says nothing.
	Scope string
}

// verifier verifies signatures the way OPA does. The zero verifier refuses every bundle.
type verifier struct {
	config   *opa.VerificationConfig
	trusting bool // takes bundles without looking at signatures
}

// configuration is for OPA's readers, which take none for permission to skip the
// signature of a bundle that has none.
func (v verifier) configuration() *opa.VerificationConfig {
	if v.trusting {
		return nil
	}
	return cmp.Or(v.config, &opa.VerificationConfig{})
}

func (k Key) verifier() (verifier, error) {
	algorithm, err := k.algorithm()
	if err != nil {
		return verifier{}, fmt.Errorf("cannot use the bundle's public key: %w", err)
	}
	config := &opa.KeyConfig{Key: k.PEM, Algorithm: algorithm, Scope: k.Scope}
	if k.ID != "" {
		return verifier{config: opa.NewVerificationConfig(map[string]*opa.KeyConfig{k.ID: config}, "", k.Scope, nil)}, nil
	}
	return verifier{config: opa.NewVerificationConfig(map[string]*opa.KeyConfig{anyKey: config}, anyKey, k.Scope, nil)}, nil
}

// algorithm checks the key, and that its algorithm is one for it.
func (k Key) algorithm() (string, error) {
	public, err := k.parse()
	if err != nil {
		return "", err
	}
	var kind string
	var fitting []string
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minRSABits {
			return "", fmt.Errorf("it is an RSA key of %d bits; use one of %d or more", bits, minRSABits)
		}
		kind, fitting = "an RSA key", []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		name := public.Curve.Params().Name
		kind = "an ECDSA key of the curve " + name
		algorithm, known := map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[name]
		if !known {
			return "", fmt.Errorf("it is %s; use one of P-256, P-384 or P-521", kind)
		}
		fitting = []string{algorithm}
	default:
		return "", fmt.Errorf("it is a %T, which OPA can't verify bundles with; use an RSA or ECDSA key", public)
	}
	if k.Algorithm == "" {
		return fitting[0], nil
	}
	if !slices.Contains(fitting, k.Algorithm) {
		return "", fmt.Errorf("it is %s, whose algorithm is %s, not %q; correct algorithm or leave it out", kind, strings.Join(fitting, ", "), k.Algorithm)
	}
	return k.Algorithm, nil
}

func (k Key) parse() (any, error) {
	block, rest := pem.Decode([]byte(k.PEM))
	switch {
	case block == nil:
		return nil, errors.New(`it is not in PEM form; "openssl pkey -pubout" prints it so`)
	case strings.Contains(block.Type, "PRIVATE"):
		return nil, errors.New("it is a private key, which belongs to whoever signs bundles and nowhere else")
	case strings.TrimSpace(string(rest)) != "":
		return nil, errors.New("there is more than one PEM block; a signature is verified with one key")
	}
	switch block.Type {
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	}
	return nil, fmt.Errorf("it is a %q; give a PUBLIC KEY or a CERTIFICATE", block.Type)
}
