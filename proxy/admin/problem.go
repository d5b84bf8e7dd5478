package admin

import (
	"encoding/json"
	"net/http"
)

// problem is an error as RFC 9457 writes it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// refuse answers with a problem. The detail says how to mend it.
func refuse(w http.ResponseWriter, status int, detail string) {
	write(w, "application/problem+json", status, problem{"about:blank", http.StatusText(status), status, detail})
}

func answer(w http.ResponseWriter, v any) { write(w, "application/json", http.StatusOK, v) }

func write(w http.ResponseWriter, contentType string, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
