package engine

import (
	"strconv"
	"time"
)

// Unserved is why a request made no attempt, for its record. Records of older versions
// don't have it.
type Unserved struct {
	why  UnservedWhy
	outs []OutRecord // at most maxOuts
	more int         // that didn't fit
}

// maxOuts bounds the channels of a refusal: where a whole pool is out every request has
// such a record.
const maxOuts = 8

// UnservedWhy is what kept a request from its first attempt. The zero value is a reason
// that isn't known.
type UnservedWhy uint8

// The reasons for which a request makes no attempt.
const (
	UnservedUnknown     UnservedWhy = iota
	UnservedCallerRate              // the caller's rate is spent
	UnservedGroupRates              // the rates of all its groups are spent
	UnservedNoChannel               // all channels are set aside
	UnservedPolicy                  // the route policy leaves no channel, or failed
	UnservedRetryBudget             // it is a replay, and the retry budget can't pay for it
	UnservedBudget                  // no time is left for an attempt
	UnservedGone                    // the last channel of its chain went out meanwhile
)

var unservedNames = [...]string{"", "caller_rate", "group_rates", "no_channel", "policy", "retry_budget", "budget", "gone"}

func (w UnservedWhy) String() string { return name(unservedNames[:], w) }

// OutRecord is a channel that was out for the request. What only other instances know is
// never the reason: it leaves no request nobody.
type OutRecord struct {
	Group   string
	Channel string
	Why     Bar
	Until   time.Time // when it ends by itself; zero if that isn't known
}

// Why returns the reason.
func (u *Unserved) Why() UnservedWhy { return u.why }

// Outs returns the channels that were out, at most 8 of them, and how many more there
// were. Don't change the slice.
func (u *Unserved) Outs() ([]OutRecord, int) { return u.outs, u.more }

// unserved is what the record keeps of a refusal.
func (r *Refusal) unserved() *Unserved {
	u := &Unserved{more: max(len(r.outs)-maxOuts, 0)}
	switch r.Kind {
	case RefusalRate:
		u.why = UnservedGroupRates
		if r.ofCaller {
			u.why = UnservedCallerRate
		}
	case RefusalNoChannel:
		u.why = UnservedNoChannel
	case RefusalPolicy:
		u.why = UnservedPolicy
	}
	for _, o := range r.outs[:min(len(r.outs), maxOuts)] {
		u.outs = append(u.outs, OutRecord{o.Channel.group.spec.Name, o.Channel.spec.Name, o.Why, o.Until})
	}
	return u
}

// unservedBy is what the record keeps of a call whose first attempt couldn't start.
func unservedBy(lock Interlock) *Unserved {
	switch lock {
	case InterlockRetryBudget:
		return &Unserved{why: UnservedRetryBudget}
	case InterlockBudget:
		return &Unserved{why: UnservedBudget}
	}
	return &Unserved{why: UnservedGone}
}

func (u *Unserved) appendJSON(b []byte) []byte {
	b = appendWord(append(b, `{"why":`...), u.why.String())
	if len(u.outs) > 0 {
		b = append(b, `,"out":[`...)
		for i, o := range u.outs {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(append(b, `{"group":`...), o.Group)
			b = appendString(append(b, `,"channel":`...), o.Channel)
			b = appendWord(append(b, `,"why":`...), o.Why.String())
			if !o.Until.IsZero() {
				b = append(o.Until.UTC().AppendFormat(append(b, `,"until":"`...), time.RFC3339Nano), '"')
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if u.more > 0 {
		b = strconv.AppendInt(append(b, `,"more":`...), int64(u.more), 10)
	}
	return append(b, '}')
}

// unservedForm is the public form.
type unservedForm struct {
	Why string `json:"why"`
	Out []struct {
		Group   string    `json:"group"`
		Channel string    `json:"channel"`
		Why     string    `json:"why"`
		Until   time.Time `json:"until"`
	} `json:"out"`
	More int `json:"more"`
}

func (f *unservedForm) unserved() *Unserved {
	u := &Unserved{more: f.More + max(len(f.Out)-maxOuts, 0)}
	u.why, _ = parse[UnservedWhy]("reason", unservedNames[:], f.Why)
	for _, o := range f.Out[:min(len(f.Out), maxOuts)] {
		why, _ := parse[Bar]("bar", barTexts[:], o.Why)
		u.outs = append(u.outs, OutRecord{o.Group, o.Channel, why, writable(o.Until)})
	}
	return u
}
