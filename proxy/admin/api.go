package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/ledger"
)

// maxBody bounds a request's body: names and a time.
const maxBody = 16 << 10

// api shows and changes the standing.
type api struct {
	parts Parts
	by    string // who changes something, as far as is known
}

// The names under which changes are recorded. There is one token, so it tells no person.
const (
	byToken  = "admin_token"
	byNobody = "nobody in particular"
)

func newAPI(p Parts) http.Handler {
	a := &api{parts: p, by: byToken}
	if p.Token == "" {
		a.by = byNobody
	}
	mux := http.NewServeMux()
	for _, route := range []struct {
		method, path string
		serve        http.HandlerFunc
	}{
		{http.MethodGet, "/api/standing", a.standing},
		{http.MethodPost, "/api/standing/reset", a.reset},
		{http.MethodPost, "/api/channels/{group}/{channel}/disable", a.disable},
		{http.MethodPost, "/api/channels/{group}/{channel}/enable", a.enable},
		{http.MethodGet, "/api/chain", a.chain},
	} {
		mux.HandleFunc(route.path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != route.method {
				w.Header().Set("Allow", route.method)
				refuse(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is served for %s", route.path, route.method))
				return
			}
			route.serve(w, r)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there are GET /api/standing, POST /api/standing/reset, POST /api/channels/GROUP/CHANNEL/disable and /enable, GET /api/chain")
	})
	return noBrowser(p.Token, wantToken(p.Token, mux))
}

// standingAnswer is what GET /api/standing says.
type standingAnswer struct {
	At    time.Time      `json:"at"`
	Aside []ledger.Aside `json:"aside"`
}

func (a *api) standing(w http.ResponseWriter, _ *http.Request) {
	now := a.parts.Clock()
	answer(w, standingAnswer{now.UTC(), asidesOf(a.parts.Standing.List(now))})
}

func asidesOf(list []engine.Aside) []ledger.Aside {
	out := make([]ledger.Aside, len(list))
	for i, aside := range list {
		out[i] = ledger.AsideOf(aside)
	}
	return out
}

// resetQuestion says what to lift. What is left out fits everything; nothing at all needs
// to say so.
type resetQuestion struct {
	All      bool   `json:"all"`
	Kind     string `json:"kind"`
	Group    string `json:"group"`
	Channel  string `json:"channel"`
	Provider string `json:"provider"`
	Key      string `json:"key"`
	Model    string `json:"model"`
}

type resetAnswer struct {
	Lifted []ledger.Aside `json:"lifted"`
}

func (a *api) reset(w http.ResponseWriter, r *http.Request) {
	var q resetQuestion
	if !read(w, r, &q) {
		return
	}
	kind, err := engine.ParseFactKind(q.Kind)
	if q.Kind == "" {
		kind, err = engine.FactNothing, nil
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error()+"; there are key_cooled, channel_quarantined, model_evicted, breaker_open and channel_disabled")
		return
	}
	like := engine.Fact{Kind: kind, Group: q.Group, Channel: q.Channel, Provider: q.Provider, Key: q.Key, Model: q.Model}
	if all := like == (engine.Fact{}); all != q.All {
		detail := `name what to reset by "kind", "group", "channel", "provider", "key" or "model", or write "all": true`
		if q.All {
			detail = `"all" lifts everything, and other names stand beside it; leave one of the two out`
		}
		refuse(w, http.StatusBadRequest, detail)
		return
	}
	a.lift(w, r, "reset", like)
}

// lift resets what is like a fact, records it, and answers.
func (a *api) lift(w http.ResponseWriter, r *http.Request, action string, like engine.Fact) {
	now := a.parts.Clock()
	lifted := asidesOf(a.parts.Standing.Reset(now, like))
	a.record(r, action, now, like, lifted)
	answer(w, resetAnswer{lifted})
}

func (a *api) record(r *http.Request, action string, now time.Time, about engine.Fact, before []ledger.Aside) {
	c := ledger.Change{
		At: now, Action: action, By: a.by, From: r.RemoteAddr, Kind: about.Kind.String(), Group: about.Group, Channel: about.Channel,
		Provider: about.Provider, Key: about.Key, Model: about.Model, Before: before,
	}
	if !about.Until.IsZero() {
		until := about.Until.UTC()
		c.Until = &until
	}
	a.parts.Changes.Changed(c)
}

type disableQuestion struct {
	For string `json:"for"`
}

type disableAnswer struct {
	Aside ledger.Aside `json:"aside"`
	// Warning says that the group has nobody left.
	Warning string `json:"warning,omitempty"`
}

// maxDisabled bounds a time that was written; who wants longer leaves it out.
const maxDisabled = 365 * 24 * time.Hour

func (a *api) disable(w http.ResponseWriter, r *http.Request) {
	var q disableQuestion
	if !read(w, r, &q) {
		return
	}
	ch := a.channel(w, r)
	if ch == nil {
		return
	}
	now := a.parts.Clock()
	var until time.Time
	if q.For != "" {
		d, err := time.ParseDuration(q.For)
		if err != nil || d <= 0 || d > maxDisabled {
			refuse(w, http.StatusBadRequest, `"for" is a time such as "90s", "10m" or "24h"; leave it out to disable the channel until it is enabled`)
			return
		}
		until = now.Add(d)
	}
	group, channel := ch.Group().Name(), ch.Name()
	var before []ledger.Aside
	for _, aside := range a.parts.Standing.List(now) {
		if aside.Kind == engine.FactChannelDisabled && aside.Group == group && aside.Channel == channel {
			before = append(before, ledger.AsideOf(aside))
		}
	}
	disabled := a.parts.Standing.Disable(ch, until)
	a.record(r, "disable", now, disabled.Fact, before)
	out := disableAnswer{Aside: ledger.AsideOf(disabled)}
	if !slices.ContainsFunc(ch.Group().Channels(), func(ch *engine.Channel) bool {
		return a.parts.Standing.Report(now, ch).Bar == engine.BarNone
	}) {
		out.Warning = fmt.Sprintf("group %q has no usable channel left", group)
	}
	answer(w, out)
}

func (a *api) enable(w http.ResponseWriter, r *http.Request) {
	var q struct{}
	if !read(w, r, &q) {
		return
	}
	if ch := a.channel(w, r); ch != nil {
		a.lift(w, r, "enable", engine.Fact{Kind: engine.FactChannelDisabled, Group: ch.Group().Name(), Channel: ch.Name()})
	}
}

// channel finds the channel that the path names, or refuses the request.
func (a *api) channel(w http.ResponseWriter, r *http.Request) *engine.Channel {
	group, channel := r.PathValue("group"), r.PathValue("channel")
	var there []string
	for _, g := range a.parts.Catalog().Groups() {
		for _, ch := range g.Channels() {
			if g.Name() == group && ch.Name() == channel {
				return ch
			}
			there = append(there, g.Name()+"/"+ch.Name())
		}
	}
	const shown = 50
	if len(there) > shown {
		there = append(there[:shown], "…")
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("there is no channel %s/%s; there are: %s", group, channel, strings.Join(there, ", ")))
	return nil
}

func (a *api) chain(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q := ChainQuestion{Caller: v.Get("caller"), Endpoint: v.Get("endpoint"), Model: v.Get("model")}
	if q.Model == "" {
		refuse(w, http.StatusBadRequest, "name a model: GET /api/chain?model=MODEL, and perhaps caller and endpoint")
		return
	}
	out, err := a.parts.Chain(q)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	answer(w, out)
}

// read decodes a body of one JSON object, or refuses the request. An empty body is an
// empty object.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if errors.Is(err, io.EOF) {
		return true
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return true
		}
		err = cmp.Or(err, errors.New("something follows the object"))
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", maxBody))
		return false
	}
	refuse(w, http.StatusBadRequest, "cannot read the body: "+err.Error()+"; send one JSON object with the documented members")
	return false
}
