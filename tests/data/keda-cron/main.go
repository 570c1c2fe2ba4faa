// Records what KEDA's cron trigger does, minute by minute, around every clock change of 2026 to 2028.
//
// It asks robfig/cron the way KEDA 2.20's cron scaler does: a trigger is active where the next end comes no later than
// the next start. In: cases, one a line on standard input, separated by "|": zone, start, end. Out: JSON lines.
//
//	go run . < cases.txt > recorded.jsonl
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

var first = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
var last = time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)

type recorded struct {
	Zone   string  `json:"zone"`
	Start  string  `json:"start"`
	End    string  `json:"end"`
	Active bool    `json:"active"` // at the first minute of 2026, UTC
	Flips  int     `json:"flips"`  // in the three years
	Digest string  `json:"digest"` // SHA-256 of the instants of all flips, one Unix time a line
	Near   []int64 `json:"near"`   // the flips within four days of a clock change, Unix time
	Fires  int     `json:"fires"`  // of the start expression, one after the other
	Starts string  `json:"starts"` // SHA-256 of those
}

func active(now time.Time, start, end cron.Schedule) bool {
	nextStart, nextEnd := start.Next(now), end.Next(now)
	if nextStart.Before(nextEnd) {
		return now.After(nextStart) && now.Before(nextEnd)
	}
	return now.After(nextStart) || now.Before(nextEnd)
}

func changes(zone *time.Location) []time.Time {
	var found []time.Time
	for t := first; t.Before(last); t = t.Add(time.Minute) {
		_, before := t.Add(-time.Minute).In(zone).Zone()
		_, now := t.In(zone).Zone()
		if before != now {
			found = append(found, t)
		}
	}
	return found
}

func near(t time.Time, all []time.Time) bool {
	for _, change := range all {
		if distance := t.Sub(change).Abs(); distance <= 4*24*time.Hour {
			return true
		}
	}
	return false
}

func digest(instants []int64) string {
	hash := sha256.New()
	for _, instant := range instants {
		fmt.Fprintf(hash, "%d\n", instant)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))[:16]
}

func record(name, startText, endText string) recorded {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	start, err := parser.Parse(startText)
	if err != nil {
		panic(err)
	}
	end, err := parser.Parse(endText)
	if err != nil {
		panic(err)
	}
	result := recorded{Zone: name, Start: startText, End: endText, Active: active(first.In(zone), start, end), Near: []int64{}}
	all, state := changes(zone), result.Active
	var flips []int64
	for t := first.Add(time.Minute); t.Before(last); t = t.Add(time.Minute) {
		if now := active(t.In(zone), start, end); now != state {
			state = now
			flips = append(flips, t.Unix())
			if near(t, all) {
				result.Near = append(result.Near, t.Unix())
			}
		}
	}
	var fires []int64
	for t := start.Next(first.In(zone)); !t.IsZero() && t.Before(last); t = start.Next(t) {
		fires = append(fires, t.Unix())
	}
	result.Flips, result.Digest = len(flips), digest(flips)
	result.Fires, result.Starts = len(fires), digest(fires)
	return result
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "|")
		if len(fields) != 3 {
			continue
		}
		if err := out.Encode(record(fields[0], fields[1], fields[2])); err != nil {
			panic(err)
		}
	}
}
