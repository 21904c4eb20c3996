// Package signalinghttp shows HTTP requests as signals and as operations. It needs net/http
// and nothing else.
//
// [Download] and a [Transport] raise a signal at each stage of a request:
//
//	client := &http.Client{Transport: signalinghttp.NewTransport(nil, sink)}
//	resp, err := client.Do(req)
//
// The signals are raised on the operation in the request's context, with its key. Without an
// operation, they are raised on the sink, with the URL as key, without its query and password.
//
//	stage.starting      before anything else, with progress:0
//	stage.request       the request was sent
//	stage.headers       the headers of the response have arrived
//	stage.reading       the body is read
//	progress:42         so many percent of the body were read
//	stage.completed     after progress:100; or
//	stage.failed        after http.error:404 if it was the status; or
//	stage.cancelled     the context was cancelled, or the body was closed before its end
//
// They come in this order, and one of the last three is the last. Progress is raised when
// the percentage changes, so at most 101 times; if the length is not known, only at the
// beginning and at the end.
//
// A [Handler] is the other side: each request that a server gets is an operation, which can
// be seen, explained and cancelled.
package signalinghttp
