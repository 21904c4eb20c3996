package statuspage

import (
	"net/url"
)

// Frames returns two functions. The first makes the next frame of a view at once, as a
// client of a stream would. The second ends the view.
func Frames(p *Page, text string) (frame func() []byte, end func(), err error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, nil, err
	}
	name := values.Get("view")
	values.Del("view")
	q, err := parse(name, values)
	if err != nil {
		return nil, nil, err
	}
	v, leave, err := p.join(q, "")
	if err != nil {
		return nil, nil, err
	}
	v.latest(p)
	return func() []byte {
		v.due = v.due.Add(-1 << 40)
		body, _, _ := v.latest(p)
		return body
	}, leave, nil
}
