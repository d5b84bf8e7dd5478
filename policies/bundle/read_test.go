package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"testing"
)

func pack(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	tarred := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := tarred.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}); err != nil {
			return nil
		}
		_, _ = tarred.Write([]byte(files[name]))
	}
	if err := tarred.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// FuzzRead packs what it is given, because no mutation of an archive would pass the
// checksum. Whatever a bundle says of itself, reading it ends with a policy or an error.
func FuzzRead(f *testing.F) {
	f.Add("a.rego", "package a\n", ".manifest", `{"revision":"r","roots":["a"],"rego_version":1,"file_rego_versions":{"/a*":1}}`)
	f.Add("x/data.json", `{"a":[1,2,{"b":null}]}`, "a.rego", "package b\n\nr if input.a\n")
	f.Add("a.rego", "package a\n", ".signatures.json", `{"signatures":["e30.e30.x"],"plugin":""}`)
	f.Add("data.yaml", "a: &a [1]\nb: [*a, *a]\n", ".manifest.pb", "\x0a\x01r")
	f.Add("patch.json", `{"data":[{"op":"upsert","path":"/x","value":1}]}`, "policy.wasm", "\x00asm")
	f.Add("../../a.rego", "package a\n", "/a.rego", "package a\n")
	verify, err := Key{PEM: fuzzKey}.verifier()
	if err != nil {
		f.Fatal(err)
	}
	const limit = 1 << 20
	f.Fuzz(func(t *testing.T, name1, text1, name2, text2 string) {
		raw := pack(t, map[string]string{name1: text1, name2: text2})
		if raw == nil {
			return
		}
		if b, err := (verifier{trusting: true}).read(raw, limit); err == nil {
			again, err := verifier{trusting: true}.read(raw, limit)
			if err != nil || b.Digest != again.Digest || len(b.Modules) == 0 || !maps.Equal(b.Modules, again.Modules) {
				t.Errorf("read twice, it is %+v and %+v (%v)", b, again, err)
			}
		}
		for _, v := range []verifier{verify, {}} {
			if b, err := v.read(raw, limit); err == nil {
				t.Errorf("nobody has signed it, and it was read: %+v", b)
			}
		}
	})
}

// FuzzReadRaw gives the reader bytes that need not be an archive.
func FuzzReadRaw(f *testing.F) {
	whole := pack(f, map[string]string{"a.rego": "package a\n", "data.json": "{}"})
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if b, err := (verifier{trusting: true}).read(raw, 1<<20); err == nil && (len(b.Modules) == 0 || b.Digest != digestOf(raw)) {
			t.Errorf("read as %+v", b)
		}
	})
}

// fuzzKey is a public key whose private half was thrown away.
const fuzzKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEoI9lkyVypbs8qL0cD3xA3iWvWH4Z
9yq12+N+TfmY4G4MuYCq3NzO809ua5Iz08m61BCS7vbvrS23fqZCkjRgRg==
-----END PUBLIC KEY-----
`

func BenchmarkRead(b *testing.B) {
	raw := pack(b, map[string]string{"a.rego": "package a\n\nr if input.a\n", "data.json": `{"a":[1,2,3]}`})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (verifier{trusting: true}).read(raw, 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}
