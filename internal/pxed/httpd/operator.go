package httpd

import (
	"net/http"

	"github.com/slipway/slipway/internal/pxed/desk"
)

// operator lets only operators in.
func (s *Server) operator(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.mayOperate(r):
			h(w, r)
		case !s.limit.allow(client(r)):
			s.refuse(w, r, refusal{http.StatusTooManyRequests, "too-many", "too many requests from this address", ""})
		default:
			s.refuse(w, r, refusal{
				http.StatusUnauthorized, "unauthorized", "this needs the operator's token",
				"pxed token prints it on the machine that runs pxed; send Authorization: Bearer TOKEN",
			})
		}
	}
}

func (s *Server) listMachines(w http.ResponseWriter, r *http.Request) {
	list, err := s.desk.Machines(r.Context())
	s.reply(w, r, struct {
		Machines []desk.Machine `json:"machines"`
	}{list}, err)
}

func (s *Server) showMachine(w http.ResponseWriter, r *http.Request) {
	m, err := s.desk.Machine(r.Context(), r.PathValue("name"))
	s.reply(w, r, m, err)
}

func (s *Server) arm(w http.ResponseWriter, r *http.Request) {
	var order desk.Order
	if !s.read(w, r, maxSmall, &order) {
		return
	}
	m, err := s.desk.Arm(r.Context(), r.PathValue("node"), order)
	s.reply(w, r, m, err)
}

func (s *Server) rearm(w http.ResponseWriter, r *http.Request) {
	m, err := s.desk.Rearm(r.Context(), r.PathValue("node"))
	s.reply(w, r, m, err)
}

func (s *Server) disarm(w http.ResponseWriter, r *http.Request) {
	m, err := s.desk.Disarm(r.Context(), r.PathValue("node"))
	s.reply(w, r, m, err)
}

func (s *Server) wake(w http.ResponseWriter, r *http.Request) {
	sent, err := s.desk.Wake(r.Context(), r.PathValue("node"))
	s.reply(w, r, struct {
		Sent []string `json:"sent"`
	}{sent}, err)
}

func (s *Server) bind(w http.ResponseWriter, r *http.Request) {
	var to struct {
		Node string `json:"node"`
	}
	if !s.read(w, r, maxSmall, &to) {
		return
	}
	m, err := s.desk.Bind(r.Context(), r.PathValue("name"), to.Node)
	s.reply(w, r, m, err)
}

func (s *Server) forget(w http.ResponseWriter, r *http.Request) {
	s.reply(w, r, struct{}{}, s.desk.Forget(r.Context(), r.PathValue("name")))
}

func (s *Server) listMembers(w http.ResponseWriter, r *http.Request) {
	list, err := s.desk.Members(r.Context())
	s.replyMembers(w, r, list, err)
}

func (s *Server) removeMember(w http.ResponseWriter, r *http.Request) {
	list, err := s.desk.RemoveMember(r.Context(), r.PathValue("address"))
	s.replyMembers(w, r, list, err)
}

func (s *Server) replyMembers(w http.ResponseWriter, r *http.Request, list []desk.Member, err error) {
	s.reply(w, r, struct {
		Members []desk.Member `json:"members"`
	}{list}, err)
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	st, err := s.desk.Status(r.Context())
	s.reply(w, r, st, err)
}
