package hcl

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
)

// signatureWords are the algorithms of a bundle's signature whose key may be public. A
// shared secret would let whoever can check a bundle also write one.
var signatureWords = words{now: []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
}}

// bundleForm is an artifact's place in a registry.
var bundleForm = regexp.MustCompile(`^oci://[^/@\s]+/[^@\s]+$`)

// keyIDForm is what may name a signature's key.
var keyIDForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// bundle reads where a policy is fetched from, and whose signature it must have.
func (s *section) bundle() *Bundle {
	b := &Bundle{
		URL:       s.bundleURL(),
		PublicKey: s.publicKey(),
		Algorithm: s.word("algorithm", "", signatureWords),
		KeyID:     s.str("key_id", ""),
		Scope:     s.str("scope", ""),
		Token:     s.secret("token"),

		AuthoritiesPEM: s.authorities(),

		Poll:  s.duration("poll", defaultBundlePoll, minBundlePoll, maxDuration),
		Cache: s.resolve(s.str("cache", defaultBundleCache)),
	}
	if s.has("key_id") && !keyIDForm.MatchString(b.KeyID) {
		s.failAt("key_id", s.placeOfAttr("key_id"), "Not a key's name",
			"It is the name that the signature gives to its key: 1 to 128 letters, digits and . _ - : /, beginning with a letter or digit.")
	}
	if s.has("cache") && s.str("cache", "") == "" {
		s.failAt("cache", s.placeOfAttr("cache"), "Empty path",
			"The last good bundle is kept there, so that a start needs nobody else. Name a directory, or leave cache out.")
	}
	return b
}

func (s *section) bundleURL() string {
	text := s.str("url", "")
	if text == "" {
		s.missing("url", `write where the bundle is, such as url = "https://policies.example.com/fourgate.tar.gz".`)
		return ""
	}
	if strings.HasPrefix(text, registryPrefix) {
		if !bundleForm.MatchString(text) {
			s.failAt("url", s.placeOfAttr("url"), "Not an artifact's place", "Write \"oci://REGISTRY/REPOSITORY:TAG\".")
		}
		return text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		s.failAt("url", s.placeOfAttr("url"), "Not a bundle's URL",
			"Write \"https://HOST/PATH\", or \"oci://REGISTRY/REPOSITORY:TAG\" for an artifact.")
	case u.User != nil:
		s.failAt("url", s.placeOfAttr("url"), "Password in a URL",
			"A URL is logged and shown. Remove user and password from it, and set token.")
	case u.Scheme == "http" && s.has("token") && !isLoopback(net.JoinHostPort(u.Hostname(), "0")):
		s.failAt("url", s.placeOfAttr("url"), "Token travels in clear text",
			"Whoever is on the way could read the token. Write https. (Without a token http is fine: the bundle is signed.)")
	}
	return text
}

// publicKey reads a key in PEM form: file("path"), or the text itself.
func (s *section) publicKey() string {
	attr := s.attrs["public_key"]
	if attr == nil {
		s.missing("public_key", `a policy decides what is retried, so a bundle must be signed. Write public_key = file("bundle.pub").`)
		return ""
	}
	text, ok := s.textOrFile("public_key", attr.Expr)
	if !ok {
		return ""
	}
	if err := checkPublicKey(text); err != nil {
		s.failAt("public_key", s.placeOfAttr("public_key"), "Public key cannot be used",
			"%s It is wanted in PEM form, as openssl pkey -pubout prints it.", sentence(err.Error()))
		return ""
	}
	return text
}

func checkPublicKey(text string) error {
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return errors.New("there is no PEM block in it")
	case strings.Contains(block.Type, "PRIVATE"):
		return errors.New("it is a private key, which belongs to whoever signs bundles and nowhere else")
	case block.Type == "CERTIFICATE":
		_, err := x509.ParseCertificate(block.Bytes)
		return err
	case block.Type == "RSA PUBLIC KEY":
		_, err := x509.ParsePKCS1PublicKey(block.Bytes)
		return err
	}
	_, err := x509.ParsePKIXPublicKey(block.Bytes)
	return err
}

// textOrFile reads an argument that is a text, or a call of file.
func (s *section) textOrFile(name string, expr hcl2.Expression) (string, bool) {
	path := join(s.path, name)
	call, ok := callIn(expr)
	if !ok || call.Name != "file" {
		return s.text(expr, path, bounded(name))
	}
	args, ok := literals(call)
	if !ok || len(args) != 1 {
		s.fail(path, expr.Range(), "File cannot be read", "Write file(\"path\") with the path in plain quotes.")
		return "", false
	}
	content, err := s.env.readFile(s.resolve(args[0]))
	if err != nil {
		s.fail(path, expr.Range(), "File cannot be read",
			"%s cannot be read: %v. Create it, and let the user that runs Fourgate read it.", bounded(args[0]), reason(err))
		return "", false
	}
	return string(content), true
}
