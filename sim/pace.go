package sim

// pace is how much longer a replica's steps take, by time.
type pace []span

type span struct {
	from, to int64 // ns; to 0 = to the end
	factor   float64
}

// paceOf returns the slow-downs of one replica.
func paceOf(faults []Fault, replica int) pace {
	var p pace
	for i := range faults {
		f := &faults[i]
		if f.Kind != FaultSlow || f.Replica != replica {
			continue
		}
		s := span{from: int64(f.From), factor: f.Factor}
		if f.For > 0 {
			s.to = int64(f.From + f.For)
		}
		p = append(p, s)
	}
	return p
}

// at returns the factor of what begins at the time t; slow-downs of one time multiply.
func (p pace) at(t int64) float64 {
	factor := 1.0
	for _, s := range p {
		if t >= s.from && (s.to == 0 || t < s.to) {
			factor *= s.factor
		}
	}
	return factor
}
