// Package signalinghttp shows HTTP requests of clients and servers as signals and as
// operations. Beside core, it needs only the standard library.
//
// [Download] and a [Transport] raise a signal at each stage of a request:
//
//	client := &http.Client{Transport: signalinghttp.NewTransport(nil, sink)}
//	resp, err := client.Do(req)
//
// If the context of the request has an operation, this operation raises the signals, with its
// key. Otherwise they are raised on the sink. Then the key is the URL without its query and
// password.
//
//	stage.starting      at the start, followed by progress:0
//	stage.request       the request was sent
//	stage.headers       the headers of the response have arrived
//	stage.reading       the reading of the body begins
//	progress:42         42 percent of the body were read; the payload counts the bytes
//
// They come in this order. The last signal is one of these:
//
//	stage.completed          the whole response was read, after progress:100
//	stage.request.failed     the request failed, after http.error:404 if the status was the reason;
//	                         the payload is the error
//	stage.request.cancelled  the context was cancelled, or the body was closed before its end
//
// Progress is raised when the percentage changes, so at most 101 times. If the length of the
// body is not known, there are only progress:0 and progress:100.
//
// A [Handler] is for servers. Each request that it serves is an operation: a program can see
// it, explain why it waits, and cancel it.
package signalinghttp
