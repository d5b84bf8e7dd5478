package upstream

import "time"

// Reach connects to the target and agrees on TLS if it wants that, and sends nothing: a
// test of the way there. It never takes an idle connection, and Close keeps none of its
// own. It takes the place of [Attempt.Open] and has its limits and errors.
func (a *Attempt) Reach() *Error {
	err := a.connect(time.Now())
	if err != nil {
		a.failure = err
	}
	a.drop()
	a.request = nil
	return err
}
