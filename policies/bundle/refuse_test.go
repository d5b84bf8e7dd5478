package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/policies/bundle"
)

// zeros is an archive of one file of n zero bytes: a thousandth of it packed.
func zeros(t *testing.T, names ...string) []byte {
	t.Helper()
	f := files{}
	for _, name := range names {
		f[name] = strings.Repeat("\x00", 64<<10)
	}
	return archive(t, f)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	key, other := newPair(t, elliptic.P256()), newPair(t, elliptic.P256())
	good := stop("good")
	signed := key.sign(t, good, "mine")
	f := func(name string, content []byte, k bundle.Key, want string) {
		t.Helper()
		if k.PEM == "" {
			k.PEM = key.public
		}
		m := bundle.NewMetrics()
		_, err := tryOpen(t, bundle.Options{URL: newServer(t, content).URL + "/b", Key: k, MaxBytes: 64 << 10, Accept: compiles, Metrics: m})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v; want one with %q", name, err, want)
		case want != "":
			counted(t, m, "refused=1")
		}
	}
	any := bundle.Key{}
	f("good", archive(t, signed), any, "")
	f("good by name", archive(t, signed), bundle.Key{ID: "mine"}, "")

	f("unsigned", archive(t, good), any, "it isn't signed; build it with --signing-key")
	f("signature of nothing", archive(t, good.with(".signatures.json", "{}")), any, "it isn't signed")
	f("no signature in it", archive(t, good.with(".signatures.json", `{"signatures":[]}`)), any, "missing JWT")
	f("two signatures", archive(t, good.with(".signatures.json", `{"signatures":["a","b"]}`)), any, "multiple JWTs")
	f("a verifier of its own", archive(t, signed.with(".signatures.json", `{"signatures":["a"],"plugin":"trusting"}`)), any, "no verifier exists")
	f("other key", other.bundle(t, good), any, "it isn't signed with the key that belongs to public_key")
	f("other name", archive(t, signed), bundle.Key{ID: "yours"}, "its signature names another key than key_id")
	f("no name", archive(t, key.sign(t, good, "")), bundle.Key{ID: "mine"}, "its signature names no key")
	f("other use", archive(t, signed), bundle.Key{Scope: "production"}, "it is signed for another use")
	f("changed", archive(t, signed.with("decision.rego", good["decision.rego"]+"\n")), any, "it was changed after it was signed")
	f("changed manifest", archive(t, signed.with(".manifest", `{"revision":"evil"}`)), any, "it was changed after it was signed")
	f("one more", archive(t, signed.with("more.rego", "package more\n")), any, "it was changed after it was signed")
	removed := key.sign(t, good.with("more.rego", "package more\n"), "mine")
	delete(removed, "more.rego")
	f("one less", archive(t, removed), any, "it was changed after it was signed")

	f("delta", archive(t, files{"patch.json": `{"data":[{"op":"upsert","path":"/x","value":1}]}`}), any, "publish a whole bundle, not a delta")
	f("compiled", key.bundle(t, good.with("policy.wasm", "\x00asm")), any, "a compiled policy (WebAssembly or a plan)")
	f("planned", key.bundle(t, good.with("plan.json", "{}")), any, "a compiled policy (WebAssembly or a plan)")
	f("v0", key.bundle(t, good.with(".manifest", `{"revision":"x","rego_version":0}`).with("decision.rego", "package fourgate\n\ndecision = {} { true }\n")), any, "it is written in Rego v0")
	f("v0 in part", key.bundle(t, good.with(".manifest", `{"revision":"x","file_rego_versions":{"old.rego":0}}`).with("old.rego", "package old\n\na = 1 { true }\n")), any, "it is written in Rego v0")
	f("only data", key.bundle(t, files{"data.json": `{"a":1}`}), any, "it holds no .rego file")
	f("only tests", key.bundle(t, files{"a_test.rego": "package a\n"}), any, "it holds no .rego file")
	f("outside its roots", key.bundle(t, good.with(".manifest", `{"revision":"x","roots":["team"]}`)), any, "do not permit 'package fourgate' in module")
	f("data outside its roots", key.bundle(t, good.with(".manifest", `{"revision":"x","roots":["fourgate"]}`).with("data.json", `{"params":{}}`)), any, "do not permit data")
	f("the configuration's data", key.bundle(t, good.with("params/data.json", `{"retry":true}`)), any, "params")
	f("not Rego", key.bundle(t, good.with("decision.rego", "package fourgate\n\ndecision := {\n")), any, "decision.rego:")
	f("not JSON", key.bundle(t, good.with("data.json", `{"a":`)), any, "did not find expected")
	f("a revision that fills logs", key.bundle(t, good.with(".manifest", `{"revision":"`+strings.Repeat("x", 257)+`"}`)), any, "a --revision of up to 256 printable characters")
	f("a name that breaks lines", key.bundle(t, good.with("a\nb.rego", "package a\n")), any, "printable characters")
	f("a long name", key.bundle(t, good.with(strings.Repeat("a/", 200)+"b.rego", "package a\n")), any, "up to 256")
	f("two files with one name", key.bundle(t, good.with("./decision.rego", "package a\n")), any, "two files with the name")

	f("nothing", nil, any, "it is no gzip archive")
	f("text", []byte("package fourgate\n"), any, "it is no gzip archive")
	f("half", archive(t, signed)[:300], any, "damaged or incomplete")
	f("more behind it", append(archive(t, signed), "more"...), any, "damaged or incomplete")
	f("no tar", gzipped(t, "package fourgate\n"), any, "damaged or incomplete")
	noise := make([]byte, 64<<10+1)
	_, _ = rand.Read(noise)
	f("huge", noise, any, "it has more than the 65536 bytes")
	f("bomb in one file", gzipped(t, strings.Repeat("\x00", 600<<10)), any, "more than the 524288 bytes that a bundle may have unpacked")
	f("empty files that are large", sparse(t, 6), any, "more than the 524288 bytes that a bundle may have unpacked")
	f("bomb in many", zeros(t, "a", "b", "c", "d", "e", "f", "g", "h", "i"), any, "more than the 524288 bytes that a bundle may have unpacked")
}

// sparse is an archive whose n files have a megabyte each by their headers and nothing in
// the archive. Go's writer makes none, so that what marks it is written afterwards.
func sparse(t *testing.T, n int) []byte {
	t.Helper()
	var plain bytes.Buffer
	tarred := tar.NewWriter(&plain)
	for i := range n {
		if err := tarred.WriteHeader(&tar.Header{Name: fmt.Sprint(i, ".json"), Typeflag: tar.TypeReg, Mode: 0o600, Format: tar.FormatPAX, PAXRecords: map[string]string{
			"XNU.sparse.major": "0", "XNU.sparse.minor": "1", "XNU.sparse.name": fmt.Sprint(i, ".json"),
			"XNU.sparse.size": fmt.Sprint(100 << 10), "XNU.sparse.numblocks": "1", "XNU.sparse.map": fmt.Sprint(100<<10, ",0"),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tarred.Close(); err != nil {
		t.Fatal(err)
	}
	return gzipped(t, strings.ReplaceAll(plain.String(), "XNU.", "GNU."))
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func TestWhatIsUnreachable(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	good := key.bundle(t, stop("good"))
	timeout := waitLimit
	f := func(name string, handler http.HandlerFunc, want string) {
		t.Helper()
		m := bundle.NewMetrics()
		at := newServer(t, good)
		at.set(good, handler)
		_, err := tryOpen(t, bundle.Options{URL: at.URL + "/b?sig=CONFIDENTIAL", Key: bundle.Key{PEM: key.public}, Timeout: timeout, Metrics: m})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "CONFIDENTIAL") {
			t.Errorf("%s: error %v; want one with %q", name, err, want)
		}
		counted(t, m, "unreachable=1")
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "a page", code) }
	}
	f("not there", status(http.StatusNotFound), "its server replied with 404 Not Found; check url")
	f("no token", status(http.StatusUnauthorized), "its server replied with 401 Unauthorized; check token")
	f("forbidden", status(http.StatusForbidden), "check token")
	f("broken", status(http.StatusInternalServerError), "500 Internal Server Error")
	f("empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "204 No Content")
	f("unchanged, out of the blue", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "there is none yet")
	f("cut off", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10000")
		_, _ = w.Write(good[:100])
	}, "its answer was cut off")
	f("reset", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF")
	f("endless error", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 1<<16))
		}
	}, "418")
	f("in circles", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again?sig=CONFIDENTIAL", http.StatusFound)
	}, "stopped after 10 redirects")

	timeout = 50 * time.Millisecond
	f("slow to begin", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "it took longer than 50ms")
	f("slow to end", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(good[:100])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, "it took longer than 50ms")

	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := tryOpen(t, bundle.Options{URL: gone.URL, Key: bundle.Key{PEM: key.public}}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("gone: error %v", err)
	}
}

// A token is for the server of the URL. It is shown to nobody else, and in no message.
func TestWhoSeesTheToken(t *testing.T) {
	t.Parallel()
	const token = "very-confidential"
	key := newPair(t, elliptic.P256())
	elsewhere := newServer(t, key.bundle(t, stop("good")))
	at := newServer(t, nil)
	at.set(nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			http.Redirect(w, r, "/second", http.StatusFound)
			return
		}
		http.Redirect(w, r, elsewhere.URL+"/third?sig="+token, http.StatusTemporaryRedirect)
	})
	said := &log{}
	s := open(t, bundle.Options{URL: at.URL + "/first?sig=" + token, Key: bundle.Key{PEM: key.public}, Token: engine.NewSecret(token), Logger: said.logger()})
	inForce(t, s, "good")
	for _, r := range at.requests() {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("%s was asked with the authorization %q", r.URL.Path, got)
		}
	}
	if got := elsewhere.requests()[0].Header.Get("Authorization"); got != "" || len(at.requests()) != 2 {
		t.Errorf("a server elsewhere was shown %q", got)
	}
	elsewhere.Close()
	poll(t, s, bundle.Unreachable, "refused")
	if strings.Contains(said.String(), token) || strings.Contains(s.Status().Problem, token) {
		t.Errorf("a secret was logged:\n%s", said)
	}
}

func TestWhichServersAreTrusted(t *testing.T) {
	t.Parallel()
	key := newPair(t, elliptic.P256())
	plain := newServer(t, key.bundle(t, stop("good")))
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain.URL, http.StatusFound)
			return
		}
		plain.ServeHTTP(w, r)
	}))
	secure.Config.ErrorLog = (&log{}).standard()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	authority := inPEM("CERTIFICATE", secure.Certificate().Raw)
	o := bundle.Options{URL: secure.URL, Key: bundle.Key{PEM: key.public}, AuthoritiesPEM: authority}
	inForce(t, open(t, o), "good")
	f := func(o bundle.Options, want string) {
		t.Helper()
		if _, err := tryOpen(t, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one with %q", err, want)
		}
	}
	f(bundle.Options{URL: secure.URL + "/down", Key: o.Key, AuthoritiesPEM: authority}, "which is not https")
	f(bundle.Options{URL: secure.URL, Key: o.Key}, "certificate")
	f(bundle.Options{URL: secure.URL, Key: o.Key, AuthoritiesPEM: "-"}, "no certificate in PEM form")
}

func TestOptions(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key := newPair(t, elliptic.P256())
	f := func(o bundle.Options, want string) {
		t.Helper()
		if o.Key.PEM == "" {
			o.Key.PEM = key.public
		}
		if o.URL == "" {
			o.URL = "https://policies.invalid/b"
		}
		_, err := tryOpen(t, o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "CONFIDENTIAL") {
			t.Errorf("error %v; want one with %q", err, want)
		}
	}
	secret := engine.NewSecret("CONFIDENTIAL")
	f(bundle.Options{URL: "ftp://policies.invalid/b"}, `scheme "ftp"`)
	f(bundle.Options{URL: "policies.tar.gz"}, "write https://HOST/PATH")
	f(bundle.Options{URL: "https://a b/?CONFIDENTIAL"}, "cannot use bundle url")
	f(bundle.Options{URL: "oci://user:CONFIDENTIAL@registry/Team"}, "cannot use bundle url")
	f(bundle.Options{URL: "https://me:CONFIDENTIAL@policies.invalid/b"}, "it has a user; set token instead")
	f(bundle.Options{URL: "http://policies.invalid/b", Token: secret}, "anybody on the way could read it; use https")
	f(bundle.Options{URL: "oci://policies.invalid"}, "write oci://REGISTRY/REPOSITORY:TAG")
	f(bundle.Options{URL: "oci://policies.invalid/Team:v1"}, "write oci://REGISTRY/REPOSITORY:TAG")

	f(bundle.Options{Key: bundle.Key{PEM: "x"}}, "it is not in PEM form")
	f(bundle.Options{Key: bundle.Key{PEM: key.private}}, "it is a private key")
	f(bundle.Options{Key: bundle.Key{PEM: key.public + key.public}}, "more than one PEM block")
	f(bundle.Options{Key: bundle.Key{PEM: inPEM("SECRET", nil)}}, "give a PUBLIC KEY")
	f(bundle.Options{Key: bundle.Key{Algorithm: "HS256"}}, `whose algorithm is ES256, not "HS256"`)
	f(bundle.Options{Key: bundle.Key{Algorithm: "RS256"}}, "an ECDSA key of the curve P-256")
	f(bundle.Options{Key: bundle.Key{PEM: newPair(t, elliptic.P224()).public}}, "use one of P-256")
	f(bundle.Options{Key: bundle.Key{PEM: inPEM("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&small.PublicKey))}}, "an RSA key of 1024 bits")
	f(bundle.Options{Key: bundle.Key{PEM: inPEM("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&large.PublicKey)), Algorithm: "ES256"}}, "it is an RSA key")

	rsaPair := pair{inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(large)), inPEM("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&large.PublicKey))}
	for algorithm, by := range map[string]pair{"": rsaPair, "RS384": rsaPair, "PS512": rsaPair, "ES384": newPair(t, elliptic.P384()), "ES512": newPair(t, elliptic.P521())} {
		signed := algorithm
		if signed == "" {
			signed = "RS256"
		}
		at := newServer(t, archive(t, by.signAs(t, stop(signed), signed, "mine")))
		s, err := tryOpen(t, bundle.Options{URL: at.URL, Key: bundle.Key{PEM: by.public, Algorithm: algorithm}})
		if err != nil {
			t.Errorf("%s: %v", signed, err)
			continue
		}
		inForce(t, s, signed)
	}
}
