package hcl

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/fourgate-dev/fourgate/engine"
)

// SharedStateSwitch is the variable of the environment that switches the shared state off,
// with the value off and whatever the configuration says: in an outage nobody wants to edit
// that. What only the backend needs, its URL's variable or file, may be missing then.
const SharedStateSwitch = "FOURGATE_SHARED_STATE"

var (
	backendWords = words{now: []string{"memory", "redis"}}
	outageWords  = words{now: []string{"local", "refuse"}}
)

// prefixForm is what is no trouble in a pattern, an access list or a terminal.
var prefixForm = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,64}$`)

var (
	databaseForm  = regexp.MustCompile(`^(/\d{0,6})?$`)
	parameterForm = regexp.MustCompile(`^(db=\d{1,6})?$`)
)

// state reads where instances share what they learn.
func (d *decoder) state(s *section) {
	st := State{Backend: s.word("backend", "memory", backendWords)}
	if st.Backend == "memory" {
		for _, name := range stateShape.attrs {
			if name != "backend" && s.has(name) {
				s.warn(s.placeOfAttr(name), "Setting of a state that isn't shared",
					"backend = \"memory\" keeps what this instance learns to itself. Remove %s, or set backend = \"redis\".", name)
			}
		}
		d.cfg.State = st
		return
	}
	st.URL = s.stateURL()
	st.Prefix = s.str("prefix", defaultStatePrefix)
	st.OnOutage = s.word("on_outage", "local", outageWords)
	st.Breakers = s.flag("breakers")
	if !prefixForm.MatchString(st.Prefix) {
		s.failAt("prefix", s.placeOfAttr("prefix"), "Prefix cannot begin a key",
			"Write 1 to 64 letters, digits and . _ - : /, such as %q. Instances with the same one share.", defaultStatePrefix)
	}
	if !d.stateIsOff() {
		st.AuthoritiesPEM = s.authorities()
	}
	d.cfg.State = st
}

func (d *decoder) stateIsOff() bool {
	v, _ := d.env.lookup(SharedStateSwitch)
	return v == "off"
}

// stateURL reads where the backend is. It may have a password in it, which belongs into a
// variable or a file then; no diagnostic repeats any of it.
func (s *section) stateURL() engine.Secret {
	attr := s.attrs["url"]
	if attr == nil {
		s.missing("url", `write where Redis or Valkey is: url = "redis://HOST:6379/0", or url = env("REDIS_URL") if there is a password in it.`)
		return engine.Secret{}
	}
	var shown engine.Secret
	_, isCall := callIn(attr.Expr)
	if isCall && (s.stateIsOff() || s.env.WithoutSecrets) {
		return engine.Secret{}
	}
	if isCall {
		shown = s.secret("url")
	} else {
		shown = engine.NewSecret(s.str("url", ""))
	}
	if s.isFaulty(join(s.path, "url")) {
		return engine.Secret{}
	}
	u, err := url.Parse(shown.Reveal())
	bad := err != nil
	if !bad {
		switch u.Scheme {
		case "redis", "rediss", "valkey", "valkeys":
			bad = !isHost(u.Hostname()) || !isPort(u.Port()) || !databaseForm.MatchString(u.Path)
		case "unix":
			bad = u.Host != "" || u.Path == ""
		default:
			bad = true
		}
	}
	bad = bad || !parameterForm.MatchString(u.RawQuery) || u.Fragment != ""
	switch {
	case bad:
		s.failAt("url", s.placeOfAttr("url"), "Not a backend's URL",
			"Write redis://HOST:PORT/DATABASE, rediss:// for TLS, or unix:///PATH/TO/SOCKET?db=DATABASE, and no other parameters. Special characters of a password are escaped, such as %%40 for @.")
	case u.User != nil && !isCall:
		s.failAt("url", s.placeOfAttr("url"), "Password in a URL",
			"A configuration is copied, committed and printed. Write url = env(\"NAME\") or file(\"path\").")
	case u.User != nil && (u.Scheme == "redis" || u.Scheme == "valkey") && isPublicClearText("http://"+u.Host):
		s.warn(s.placeOfAttr("url"), "Password travels in clear text",
			"Whoever is on the way could read it, and write what instances believe. Write rediss:// if the backend speaks TLS.")
	}
	return shown
}

// isHost says whether it can be one host: a list of several isn't supported.
func isHost(s string) bool { return s != "" && !strings.ContainsAny(s, ", ") }

// isPort says whether it is a port or none.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil
}
