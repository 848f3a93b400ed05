package capacity

func (e *Envelope) html() ([]byte, error) { return nil, nil }
