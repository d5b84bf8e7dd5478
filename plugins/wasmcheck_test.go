package plugins

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzCheck holds that reading any binary ends without a panic and without a work that
// grows beyond the file.
func FuzzCheck(f *testing.F) {
	// Small ones: the fuzzer takes a minute to shrink each find of a large one.
	const magic = "\x00asm\x01\x00\x00\x00"
	f.Add([]byte(magic + "\x01\x05\x01\x60\x00\x01\x7f\x02\x13\x01\x08fourgate\x06status\x00\x00")) // a type and an import
	f.Add([]byte(magic + "\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x04\x04\x01\x70\x00\x01\x05\x03\x01\x00\x01" +
		"\x07\x15\x02\x08classify\x00\x00\x06memory\x02\x00\x0a\x0a\x01\x08\x00\x03\x40\x10\x00\x0c\x00\x0b\x0b"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b"))
	f.Fuzz(func(_ *testing.T, binary []byte) {
		_, _ = check(binary, DefaultMemoryBytes, &profilePlain)
		_, _ = check(binary, DefaultMemoryBytes, &profileWASI)
	})
}

// TestBuiltinsNeedNoWatching keeps the built-in classifiers on the fast side: their call
// graphs prove that they look at the deadline often enough.
func TestBuiltinsNeedNoWatching(t *testing.T) {
	t.Parallel()
	for _, name := range Builtins() {
		binary, _, err := Module{Source: BuiltinPrefix + name}.read(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(binary) > 16<<10 {
			t.Errorf("%s has %d bytes; the limit is %d", name, len(binary), 16<<10)
		}
		got, err := check(binary, wasmPage, &profilePlain)
		if err != nil || got.watchCalls {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		t.Logf("%s: %d bytes, at most %d steps between two looks at the deadline", name, len(binary), got.steps)
	}
}

// TestCodesAreTheDocumentedOnes spells the ABI's numbers out, so that a reordering of
// the engine's words, or of the tables, shows.
func TestCodesAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	compare := func(what string, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	compare("classes", names(abiClasses[:]), []string{"unknown", "key_fault", "rate_limited", "provider_transient", "bad_model", "bad_request",
		"denied", "schema_invalid", "contract_violation", "refusal", "cancelled", "partial", "ok"})
	compare("scopes", names(abiScopes[:]), []string{"none", "request", "key", "model", "channel", "provider"})
	compare("endpoints", names(abiEndpoints[:]), []string{"", "openai.chat", "openai.responses", "openai.completions", "openai.embeddings",
		"openai.images", "openai.audio", "anthropic.messages", "gemini.generate"})
	compare("phases", names(abiPhases[:]), []string{"before_headers", "before_output", "after_output"})
	compare("transports", names(abiTransports[:]), []string{"network", "http", "sse"})
	compare("body ends", names(abiBodyEnds[:]), []string{"eof", "reset", "idle", "cancelled"})
	compare("operations", names(abiNetOps[:]), []string{"", "dial", "tls", "write", "read_headers", "read_body"})
	compare("network errors", names(abiNetKinds[:]), []string{"", "dns_not_found", "dns_temporary", "dial_timeout", "conn_refused",
		"network_unreachable", "proxy_error", "tls_handshake_timeout", "tls_verify", "tls_not_tls", "header_timeout", "deadline_exceeded",
		"context_canceled", "conn_reset", "eof", "unexpected_eof", "malformed_response", "http2_goaway", "http2_stream_error", "idle_timeout"})
}

func names[W interface{ String() string }](words []W) []string {
	var out []string
	for _, w := range words {
		out = append(out, w.String())
	}
	return out
}

func BenchmarkCheck(b *testing.B) {
	binary, _, err := Module{Source: BuiltinPrefix + "generic"}.read(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := check(binary, DefaultMemoryBytes, &profilePlain); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBuiltinsAreCheap holds what makes the built-in modules fast: they need no watch
// over their deadline, and leave their memory as it is.
func TestBuiltinsAreCheap(t *testing.T) {
	t.Parallel()
	for _, name := range Builtins() {
		binary, _, err := Module{Source: BuiltinPrefix + name}.read(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := check(binary, DefaultMemoryBytes, &profilePlain)
		if err != nil {
			t.Fatal(err)
		}
		if got.loops || got.watchCalls || got.stores || got.module.memoryMin != 1 || got.codeBytes > maxKeptCode || len(binary) > 16<<10 {
			t.Errorf("%s: loops %v, watched calls %v, stores %v, %d pages, %d bytes of code, %d in all",
				name, got.loops, got.watchCalls, got.stores, got.module.memoryMin, got.codeBytes, len(binary))
		}
	}
}
