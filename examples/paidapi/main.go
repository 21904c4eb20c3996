// Command paidapi asks a paid API from two processes. The contract allows a number of calls and a number of tokens a minute, for all
// processes together; a call too many is answered with 429.
//
// The questions are items of a class with two rates, in a file. A question says what it may cost; unused tokens go back. Questions of
// people go before those of a batch. While the API is busy, the class is paused for both processes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// The contract. A minute takes 600 ms here, so that you need not wait.
const (
	minute              = 600 * time.Millisecond
	maxCalls, maxTokens = 30, 3000
)

type question struct {
	Customer string // the key: the questions of a customer are asked one after the other
	Size     int    // of the text, in tokens
}

func (q question) Key() string { return q.Customer }
func (q question) Tokens() int { return q.Size + 60 } // and at most 60 for the answer

// open opens the queue. A rate lets Burst + PerSecond * minute pass in any minute: here two thirds of what is allowed. The rest is for calls
// that are on their way for different times.
func open(dir, url string) (*durable.Queue[question], func()) {
	ctx := context.Background()
	file := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "questions.db"), sqlitewriter.Options{}))
	var questions *durable.Queue[question]
	ask := func(ctx context.Context, q question) error {
		answer, err := http.Get(fmt.Sprint(url, "?tokens=", q.Tokens()))
		if err != nil {
			return err
		}
		answer.Body.Close()
		if wait, ok := retry.ParseRetryAfter(answer.Header.Get("Retry-After"), time.Now()); ok {
			pause := durable.Pause{Class: "api", For: wait, Auto: true, Reason: "the API answers " + answer.Status}
			return errors.Join(questions.Pause(ctx, pause), durable.Snooze(wait)) // no attempt: the question comes back
		}
		used, err := strconv.Atoi(answer.Header.Get("Tokens"))
		return errors.Join(err, durable.Return(ctx, "yes"), durable.Charge(ctx, 0, used-q.Tokens())) // unused tokens go back
	}
	questions = core.Must(durable.New(core.Must(sqlite.Open(ctx, file, sqlite.Options{})), question.Key, ask, durable.Options{
		Name: "questions", MaxConcurrency: 8, Poll: 50 * time.Millisecond, Lanes: []core.Lane{{Name: "person"}, {Name: "batch"}},
		Classes: []durable.Class{{
			Name:     "api",
			Rate:     core.Rate{PerSecond: maxCalls / 3 / minute.Seconds(), Burst: maxCalls / 3},
			CostRate: core.Rate{PerSecond: maxTokens / 3 / minute.Seconds(), Burst: maxTokens / 3},
		}},
	}))
	return questions, func() { questions.Close(); file.Close() }
}

// serve is one of the two processes. It ends when its input does.
func serve(dir, url string, in io.Reader) error {
	questions, shut := open(dir, url)
	defer shut()
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, in); stop() }()
	return questions.Run(ctx)
}

// show plays the API, and asks.
func show(out io.Writer) error {
	dir := core.Must(os.MkdirTemp("", "paidapi"))
	defer os.RemoveAll(dir)
	var api fakeAPI
	server := httptest.NewServer(&api)
	defer server.Close()
	questions, shut := open(dir, server.URL) // a process that only enqueues
	defer shut()
	for range 2 {
		child := exec.Command(core.Must(os.Executable()), "serve", dir, server.URL)
		child.Stderr = os.Stderr
		in := core.Must(child.StdinPipe())
		if err := child.Start(); err != nil {
			return err
		}
		defer func() { in.Close(); child.Wait() }()
	}
	ctx, began, ids := context.Background(), time.Now(), []durable.ItemID(nil)
	for n := range 36 {
		q, lane := question{fmt.Sprint("customer-", n%20), 20 + n}, []string{"batch", "person"}[n/9%2]
		ids = append(ids, core.Must(questions.Lane(lane).Class("api").Cost(q.Tokens()).Enqueue(ctx, q)))
	}
	for _, id := range ids {
		if _, err := durable.Wait[string](ctx, questions, id); err != nil {
			return err
		}
	}
	server.Close() // waits for calls
	fmt.Fprintf(out, "%d answers in %.0f minutes, %d times 429\n", api.answers, time.Since(began).Seconds()/minute.Seconds(), api.refused)
	return nil
}

// A fakeAPI keeps the contract: it counts calls and tokens of the last minute, and refuses what is above.
type fakeAPI struct {
	mu               sync.Mutex
	at               []time.Time
	tokens           []int
	answers, refused int
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked, _ := strconv.Atoi(r.FormValue("tokens"))
	now, calls, used := time.Now(), 1, asked-20
	for n := len(a.at) - 1; n >= 0 && now.Sub(a.at[n]) < minute; n-- {
		calls, used = calls+1, used+a.tokens[n]
	}
	if calls > maxCalls || used > maxTokens {
		a.refused++
		w.Header().Set("Retry-After", "1")
		http.Error(w, "", http.StatusTooManyRequests)
		return
	}
	a.at, a.tokens, a.answers = append(a.at, now), append(a.tokens, asked-20), a.answers+1
	w.Header().Set("Tokens", strconv.Itoa(asked-20)) // the answer was shorter than allowed
}

func main() {
	run := func() error { return show(os.Stdout) }
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		run = func() error { return serve(os.Args[2], os.Args[3], os.Stdin) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
