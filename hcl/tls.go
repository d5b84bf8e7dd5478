package hcl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/netip"
	"regexp"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// written says whether a block without label is there at all.
func (s *section) written() bool { return s.attrs != nil }

// certificate reads what the proxy shows to callers, nil without a tls block.
func (s *section) certificate() *tls.Certificate {
	if !s.written() {
		return nil
	}
	cert, haveCert := s.file("cert_file", "the file with the certificate and its chain, in PEM form.")
	key, haveKey := s.file("key_file", "the file with the certificate's private key, in PEM form.")
	if !haveCert || !haveKey {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		s.fail(s.path, s.placeOfAttr("cert_file"), "Certificate and key cannot be used",
			"%s Both are wanted in PEM form, the server's own certificate first in its file and the rest of the chain behind it.",
			sentence(strings.TrimPrefix(err.Error(), "tls: ")))
		return nil
	}
	return &pair
}

// hostForm is a host's name as it stands in a certificate.
var hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$`)

// upstreamTLS reads what a provider's TLS needs beyond the defaults.
func (s *section) upstreamTLS() engine.TLSSpec {
	spec := engine.TLSSpec{ServerName: s.str("server_name", "")}
	if _, err := netip.ParseAddr(spec.ServerName); err != nil && spec.ServerName != "" && !hostForm.MatchString(spec.ServerName) {
		s.failAt("server_name", s.placeOfAttr("server_name"), "Not a host name",
			"Write the name that is in the provider's certificate, without a scheme and without a port.")
	}
	spec.CertificatesPEM = s.authorities()
	return spec
}

// authorities reads the certificates of ca_file, none if it isn't written.
func (s *section) authorities() string {
	if !s.has("ca_file") {
		return ""
	}
	text, ok := s.file("ca_file", "the file with the authorities' certificates, in PEM form.")
	if !ok {
		return ""
	}
	certificates, err := authorities(text)
	if err != nil {
		s.failAt("ca_file", s.placeOfAttr("ca_file"), "Authorities cannot be used",
			"%s Write a file with one or more certificates in PEM form.", sentence(err.Error()))
	}
	return certificates
}

// authorities returns the certificates of a PEM text and nothing else of it: a private key
// that shares their file isn't kept.
func authorities(text []byte) (string, error) {
	var kept bytes.Buffer
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "", errors.New("one of the certificates cannot be read")
		}
		if err := pem.Encode(&kept, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return "", err
		}
	}
	if kept.Len() == 0 {
		return "", errors.New("the file has no certificate")
	}
	return kept.String(), nil
}

// file reads the file that an argument names. The argument must be set.
func (s *section) file(name, what string) ([]byte, bool) {
	path := s.str(name, "")
	if path == "" {
		s.missing(name, what)
		return nil, false
	}
	content, err := s.env.readFile(s.resolve(path))
	if err != nil {
		s.failAt(name, s.placeOfAttr(name), "File cannot be read",
			"%s cannot be read: %v. Create it, and let the user that runs Fourgate read it.", bounded(path), reason(err))
		return nil, false
	}
	return content, true
}

// reason returns an error of the file system without the path, which is named once.
func reason(err error) error {
	var why *fs.PathError
	if errors.As(err, &why) {
		return why.Err
	}
	return err
}
