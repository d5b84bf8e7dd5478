package hcl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pair is a self-signed certificate and its key, in PEM form.
func pair(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", private)
}

func TestListenerCertificate(t *testing.T) {
	t.Parallel()
	cert, key := pair(t)
	other, otherKey := pair(t)
	files := map[string]string{
		"etc/a.crt": cert, "etc/a.key": key, "etc/b.key": otherKey,
		"etc/chain.crt": cert + other, "etc/both.pem": key + cert, "etc/empty": "", "etc/text": "hush",
	}
	f := func(name, attributes string, certificates int, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(files)
			all["etc/x.hcl"] = "server {\n  tls {\n" + attributes + "\n  }\n}\n" + goodProvider + goodGroup
			cfg, diags := Load("etc/x.hcl", inMemory(all))
			if diff := cmp.Diff(want, found(diags)); diff != "" {
				t.Fatalf("(-want +got):\n%s\n%s", diff, picture(t, diags))
			}
			checkWording(t, diags)
			if text := picture(t, diags); strings.Contains(text, "hush") || strings.Contains(text, key[40:80]) {
				t.Errorf("a key is printed:\n%s", text)
			}
			if cfg == nil {
				return
			}
			if got := len(cfg.Server.Certificate.Certificate); got != certificates {
				t.Errorf("%d certificates in the chain, want %d", got, certificates)
			}
			// Whoever prints a configuration must not print the key.
			if text := fmt.Sprintf("%+v", *cfg); strings.Contains(text, "PrivateKey") {
				t.Errorf("the key is part of the configuration's text:\n%s", text)
			}
		})
	}
	f("pair", "cert_file = \"a.crt\"\nkey_file = \"a.key\"", 1)
	f("chain", "cert_file = \"chain.crt\"\nkey_file = \"a.key\"", 2)
	f("one file", "cert_file = \"both.pem\"\nkey_file = \"both.pem\"", 1)
	f("nothing", "", 0, "2 error: Missing argument", "2 error: Missing argument")
	f("no key", "cert_file = \"a.crt\"", 0, "2 error: Missing argument")
	f("missing file", "cert_file = \"a.crt\"\nkey_file = \"none.key\"", 0, "4 error: File cannot be read")
	f("key of another certificate", "cert_file = \"a.crt\"\nkey_file = \"b.key\"", 0, "3 error: Certificate and key cannot be used")
	f("swapped", "cert_file = \"a.key\"\nkey_file = \"a.crt\"", 0, "3 error: Certificate and key cannot be used")
	f("empty file", "cert_file = \"empty\"\nkey_file = \"a.key\"", 0, "3 error: Certificate and key cannot be used")
	f("no PEM", "cert_file = \"a.crt\"\nkey_file = \"text\"", 0, "3 error: Certificate and key cannot be used")
}

func TestAuthorities(t *testing.T) {
	t.Parallel()
	first, key := pair(t)
	second, _ := pair(t)
	broken := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("none")}))
	f := func(name, text, kept string, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := strings.Replace(goodProvider, "  key ", "  tls {\n    ca_file = \"ca.pem\"\n  }\n  key ", 1)
			cfg, diags := Load("x.hcl", inMemory(map[string]string{"x.hcl": provider + goodGroup, "ca.pem": text}))
			if diff := cmp.Diff(want, found(diags)); diff != "" {
				t.Fatalf("(-want +got):\n%s\n%s", diff, picture(t, diags))
			}
			checkWording(t, diags)
			if cfg != nil && cfg.Spec.Providers[0].TLS.CertificatesPEM != kept {
				t.Errorf("kept %q, want %q", cfg.Spec.Providers[0].TLS.CertificatesPEM, kept)
			}
		})
	}
	f("one", first, first)
	f("two with words between", "# first\n"+first+"# second\n"+second, first+second)
	f("a key isn't kept", key+first, first)
	f("key alone", key, "", "5 error: Authorities cannot be used")
	f("empty", "", "", "5 error: Authorities cannot be used")
	f("broken", first+broken, "", "5 error: Authorities cannot be used")
}
