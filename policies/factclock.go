package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
)

// dateFact is the day of the question's time, on whatever clock that is.
func dateFact(path string) fact {
	return fact{
		path: path, kind: factText,
		get: func(q *engine.Question) any { return q.Now.Format(time.DateOnly) },
		set: func(q *engine.Question, v any) error {
			text, err := as[string](v, "a date such as 2026-11-30")
			if err != nil {
				return err
			}
			day, err := time.Parse(time.DateOnly, text)
			if err != nil {
				return fmt.Errorf("it is %q; write a date such as 2026-11-30", text)
			}
			at := q.Now
			q.Now = time.Date(day.Year(), day.Month(), day.Day(), at.Hour(), at.Minute(), 0, 0, at.Location())
			return nil
		},
	}
}

// weekdayFact follows from the date: setting it goes to the next day of that name.
func weekdayFact(path string) fact {
	words := make([]string, 7)
	for d := range words {
		words[d] = strings.ToLower(time.Weekday(d).String())
	}
	return fact{
		path: path, kind: factWord, words: words,
		get: func(q *engine.Question) any { return words[q.Now.Weekday()] },
		set: func(q *engine.Question, v any) error {
			text, err := as[string](v, "a weekday")
			if err != nil {
				return err
			}
			day := slices.Index(words, text)
			if day < 0 {
				return notAWord(text, words)
			}
			q.Now = q.Now.AddDate(0, 0, (day-int(q.Now.Weekday())+7)%7)
			return nil
		},
	}
}

func clockFact(path string, most int64, get func(time.Time) int, set func(time.Time, int) time.Time) fact {
	return fact{
		path: path, kind: factNumber, most: most,
		get: func(q *engine.Question) any { return int64(get(q.Now)) },
		set: func(q *engine.Question, v any) error {
			n, err := wholeNumber(v, 0, most)
			if err == nil {
				q.Now = set(q.Now, int(n))
			}
			return err
		},
	}
}
