package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	timeout   = 10 * time.Second // of one request
	maxAnswer = 16 << 20         // bytes of an answer; a page sends much less
)

// A client asks one status page. It is safe for concurrent use.
type client struct {
	page  *url.URL // its path ends in a slash
	token string
	http  *http.Client
}

// newClient returns the client of the page at an address.
func newClient(address, token string) (*client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is no address of a status page: one is http://localhost:8080/", address)
	case u.Query().Has("token"):
		return nil, errors.New("the address has a token, which all users of this machine can see: set EPHEMERAL_TOKEN to it, and leave it out of the address")
	}
	u.RawQuery, u.Fragment = "", ""
	if !strings.HasSuffix(u.Path, "/") {
		u.Path, u.RawPath = u.Path+"/", ""
	}
	return &client{u, token, &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// get asks for a view. An answer without a time is not from a status page.
func (c *client) get(ctx context.Context, v view) (frame object, now time.Time, err error) {
	query := url.Values{}
	for name, value := range v.parameters {
		query.Set(name, fmt.Sprint(value))
	}
	if frame, err = c.ask(ctx, http.MethodGet, "api/"+v.name+"?"+parameters[v.name]+query.Encode(), nil); err == nil {
		sent, _ := frame["time"].(string)
		if now, err = time.Parse(time.RFC3339, sent); err != nil {
			err = c.noPage("")
		}
	}
	return frame, now, err
}

// act asks for an action, and reports whether that changed something.
func (c *client) act(ctx context.Context, action map[string]any) (changed bool, err error) {
	body, _ := json.Marshal(action) // texts and numbers
	answer, err := c.ask(ctx, http.MethodPost, "api/act", body)
	return answer["done"] == true, err
}

func (c *client) ask(ctx context.Context, method, path string, body []byte) (frame object, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.page.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err == nil {
		defer answer.Body.Close()
		body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	}
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the path of the API
		}
		return nil, fmt.Errorf("no answer from %s: %w", c.page.Redacted(), err)
	} else if answer.StatusCode != http.StatusOK {
		return nil, c.refusal(answer, body)
	}
	numbers := json.NewDecoder(bytes.NewReader(body))
	numbers.UseNumber() // ids may be too large for a float64
	if numbers.Decode(&frame) != nil {
		err = c.noPage("")
	}
	return frame, err
}

// noPage is the error of an answer that is not from a status page.
func (c *client) noPage(status string) error {
	return fmt.Errorf("%s answers%s, but it is no status page", c.page.Redacted(), status)
}

// refusal is the error of an answer that is not 200.
func (c *client) refusal(answer *http.Response, body []byte) error {
	var said struct{ Error string }
	switch err := json.Unmarshal(body, &said); {
	case err != nil || said.Error == "":
		moved := ""
		if to := answer.Header.Get("Location"); to != "" {
			moved = ", and points to " + to
		}
		return c.noPage(" with status " + answer.Status + moved)
	case answer.StatusCode == http.StatusUnauthorized && c.token == "":
		return errors.New("the page needs a token: set EPHEMERAL_TOKEN to it")
	case answer.StatusCode == http.StatusUnauthorized:
		return errors.New("the page does not accept the token in EPHEMERAL_TOKEN")
	case answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the page refuses this: %s", said.Error)
	}
	return fmt.Errorf("the page answers: %s", said.Error)
}
