package openai

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"tailgate/replay"
	"tailgate/replay/epoll"
	"tailgate/schemas"
)

var errTimeout = errors.New("the request's time limit")

// ended sets the outcome of a request that the client itself ended, for the reason cause. late is the kind where its time
// was up.
func ended(cause error, o *replay.Outcome, late string) {
	if errors.Is(cause, errTimeout) {
		o.Status, o.ErrorKind = schemas.ResultTimeout, late
		return
	}
	o.Status, o.ErrorKind = schemas.ResultCancelled, replay.KindAborted
}

// silence is how long nothing may have come for an answer to count as still going on.
const silence = 2 * time.Second

// lateKind tells what an answer was doing when its time was up: packet and event are the stamps of the last
// ones.
func lateKind(now, packet, event time.Duration) string {
	switch {
	case packet == replay.Never || now-packet > silence:
		return replay.KindStalled
	case event == replay.Never || now-event > silence:
		return replay.KindTrickle
	}
	return replay.KindEndless
}

// classify names what broke the connection. Trouble of the network, before or during the answer, has the status
// reset; its kind tells which.
func classify(err error) (status, kind string) {
	var (
		dns    *net.DNSError
		netErr net.Error
	)
	status = schemas.ResultReset
	switch {
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return status, replay.KindDescriptors
	case errors.As(err, &dns):
		return status, replay.KindDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return status, replay.KindConnectRefused
	case errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH):
		return status, replay.KindUnreachable
	case isTLS(err):
		return status, replay.KindTLS
	case strings.Contains(err.Error(), "GOAWAY"):
		return status, replay.KindGoAway
	case errors.Is(err, epoll.ErrProtocol) || isBadHTTP(err):
		return status, replay.KindBadHTTP
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout():
		return schemas.ResultTimeout, replay.KindTimeout
	case isReset(err):
		return status, replay.KindReset
	}
	return status, replay.KindOther
}

func isTLS(err error) bool {
	var (
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		authority x509.UnknownAuthorityError
	)
	return errors.As(err, &cert) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &authority) ||
		// crypto/tls has no exported error for the alerts that the other end sends, nor net/http for plain HTTP.
		strings.Contains(err.Error(), "remote error: tls:") || strings.Contains(err.Error(), "HTTP response to HTTPS client")
}

// isBadHTTP tells what net/http says of bytes that are no HTTP; it has no exported errors for them.
func isBadHTTP(err error) bool {
	text := err.Error()
	for _, sign := range []string{
		"malformed HTTP", "malformed chunked encoding", "malformed MIME header", "invalid byte in chunk length", "http chunk length too large",
		"chunked line ends with bare LF", "header line too long", "invalid Transfer-Encoding", "unsupported transfer encoding",
		"bad Content-Length", "server response headers exceeded", "PROTOCOL_ERROR", "FRAME_SIZE_ERROR", "frame too large",
		"COMPRESSION_ERROR", "http2: response body closed", "too many transfer encodings", "chunked encoding contains too much",
		"trailer header without chunked", "empty hex number for chunk length",
		"invalid CR in chunked line", "suspiciously long trailer", "unexpected EOF reading trailer",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// isReset tells a connection that the other end broke.
func isReset(err error) bool {
	for _, sign := range []error{
		syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe,
		net.ErrClosed,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	text := err.Error()
	// net/http has no exported errors for these.
	return strings.Contains(text, "server closed idle connection") || strings.Contains(text, "stream error: stream ID") ||
		strings.Contains(text, "client connection lost") || strings.Contains(text, "connection force closed")
}

// saysTooLong tells the messages by which engines refuse a prompt that is longer than the model allows.
func saysTooLong(message string) bool {
	message = strings.ToLower(message)
	for _, sign := range []string{
		"maximum context length", "context length", "context_length_exceeded", "exceed_context_size", "exceeds the available context size",
		"requested token count exceeds", "max_model_len", "max_seq_len", "max_num_tokens", "prompt is too long", "input is too long",
		"maximum input length", "`inputs` tokens + `max_new_tokens`", "`inputs` must have less than", "longer than the model",
	} {
		if strings.Contains(message, sign) {
			return true
		}
	}
	return false
}

// maxRefusal is how much of the body of any status but 200 is read: it may name the reason, and the connection lives on.
const maxRefusal = 64 << 10

// refused sets the outcome of any status but 200, whose body starts with data.
func refused(o *replay.Outcome, data []byte) {
	o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.HTTPKind(o.HTTPStatus)
	switch o.HTTPStatus {
	case http.StatusTooManyRequests:
		o.Status = schemas.ResultRateLimited
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		if saysTooLong(string(data)) {
			o.ErrorKind = replay.KindPromptTooLong
		}
	}
}
