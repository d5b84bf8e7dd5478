package bundle

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A registry elsewhere is asked over TLS, which one on this machine never is. The reader
// goes without a key here: signatures have tests of their own.
func TestRegistryOverTLS(t *testing.T) {
	t.Parallel()
	layer := pack(t, map[string]string{"a.rego": "package a\n"})
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":2},`+
		`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":%q,"size":%d}]}`, digestOf([]byte("{}")), digestOf(layer), len(layer))
	at := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := manifest
		switch {
		case strings.HasSuffix(r.URL.Path, "/blobs/"+digestOf(layer)):
			body = layer
		case strings.Contains(r.URL.Path, "/blobs/"):
			body = []byte("{}")
		default:
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digestOf(manifest))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(at.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: at.Certificate().Raw}))
	p, err := Options{URL: "oci://" + strings.TrimPrefix(at.URL, "https://") + "/team/policy:v1", Key: Key{PEM: fuzzKey}, AuthoritiesPEM: authority, Timeout: 20 * time.Second}.prepare()
	if err != nil {
		t.Fatal(err)
	}
	p.place.scheme, p.verify = "https", verifier{trusting: true}
	a := p.fetch(t.Context(), t.TempDir(), seen{}, 0)
	if a.lost != nil || a.refused != nil || a.bundle.Digest != digestOf(layer) {
		t.Errorf("fetched %+v", a)
	}
}
