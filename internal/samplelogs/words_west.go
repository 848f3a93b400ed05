package samplelogs

// Invented sentences. Phrases are inflected in the lists, so that any combination reads well.

var english = &language{
	space: " ",
	statements: []string{
		"$w $v $o $p.", "$t, $w $v $o.", "$w $v $o, although $w $v $o $p.",
		"Entry $n says that $w $v $o $p $t.", "No. $n: $o and $o, $p.",
	},
	questions: []string{
		"Can you tell me why $w $v $o $t?", "Which of the $n entries says that $w $v $o?",
		"Please write a short note: $w $v $o $p.", "What should we do when $w $v $o $p?", "Summarise this for $w in $n words.",
	},
	lists: map[byte][]string{
		'w': {"the lamp keeper", "our night porter", "the tide clerk", "a visiting cartographer", "the second ferry", "the quiet apprentice",
			"the harbour choir", "the ledger committee", "an old signal officer", "the bakery on the pier", "the reading circle", "the crane team"},
		'v': {"mislaid", "repaired", "ordered", "counted", "described", "compared", "returned", "postponed", "photographed", "labelled", "painted", "measured"},
		'o': {"the tide tables", "three brass lanterns", "the winter timetable", "a crate of blue rope", "the guest ledger", "the spare compass",
			"the map of the lower quay", "a letter about the roof", "the list of berths", "the invoice for the sails", "two folding chairs", "the draft of the notice"},
		'p': {"behind the north wall", "on shelf four", "at the old customs house", "near the lower quay", "in the boat shed", "under the clock",
			"beside the weather mast", "in the reading room"},
		't': {"last Tuesday", "before the spring tide", "at dawn", "during the market week", "every other morning", "after the storm", "at 06:40", "since the repairs"},
	},
}

var german = &language{
	space: " ",
	statements: []string{
		"$w $v $o $p.", "$w $v $t $o.", "Eintrag $n: $w $v $o $p.", "Zuerst steht $p ein Vermerk, dann heißt es: $w $v $o.",
	},
	questions: []string{
		"Warum heißt es, $w $v $t $o?", "Bitte prüfe Eintrag $n: $w $v $o $p.", "Was bedeutet der Satz: $w $v $o?", "Fasse das in $n Wörtern zusammen.",
	},
	lists: map[byte][]string{
		'w': {"der Türmer", "die Schleusenwärterin", "unser Nachtpförtner", "die Möwengruppe", "der zweite Lehrling", "die Werkstattleiterin",
			"der alte Kartograf", "das Marktbüro", "die Orgelbauerin", "der Fährmann"},
		'v': {"prüfte", "bestellte", "verlegte", "zählte", "beschrieb", "reparierte", "verglich", "verschob", "übermalte", "vermaß"},
		'o': {"die Gezeitentafel", "drei Messinglampen", "den Winterfahrplan", "eine Kiste blaues Tau", "das Gästebuch", "den Ersatzkompass",
			"die Größe der Fenster", "einen Brief über das Dach", "die Liste der Liegeplätze", "zwei Klappstühle"},
		'p': {"hinter der Nordmauer", "auf Regal vier", "im alten Zollhaus", "am unteren Kai", "im Bootsschuppen", "unter der Uhr", "neben dem Wettermast"},
		't': {"am Dienstag", "vor der Springflut", "im Morgengrauen", "während der Marktwoche", "nach dem Sturm", "um 6 Uhr 40", "seit dem Umbau"},
	},
}

var spanish = &language{
	space: " ",
	statements: []string{
		"$w $v $o $p.", "$t, $w $v $o.", "La nota $n dice que $w $v $o $p.", "$w $v $o y después $v $o.",
	},
	questions: []string{
		"¿Por qué $w $v $o $t?", "¿Qué hacemos si $w $v $o $p?", "Resume en $n palabras: $w $v $o.", "¿Cuál de las $n notas dice que $w $v $o?",
	},
	lists: map[byte][]string{
		'w': {"el farero", "la maestra del taller", "nuestro portero de noche", "la cartógrafa", "el segundo aprendiz", "el coro del puerto",
			"la panadera del muelle", "el comité del archivo", "una vecina de la colina", "el barquero"},
		'v': {"revisó", "perdió", "encargó", "contó", "describió", "reparó", "comparó", "aplazó", "pintó", "midió"},
		'o': {"la tabla de mareas", "tres faroles de latón", "el horario de invierno", "una caja de cuerda azul", "el libro de visitas", "la brújula de repuesto",
			"el plano del muelle", "una carta sobre el tejado", "la lista de amarres", "dos sillas plegables"},
		'p': {"detrás del muro norte", "en el estante cuatro", "en la vieja aduana", "cerca del muelle bajo", "bajo el reloj", "junto al mástil", "en la sala de lectura"},
		't': {"el martes pasado", "antes de la marea viva", "al amanecer", "durante la semana del mercado", "después de la tormenta", "a las 6:40", "cada dos mañanas"},
	},
}

var french = &language{
	space: " ",
	statements: []string{
		"$w $v $o $p.", "$t, $w $v $o.", "La note $n indique que $w $v $o $p.", "$w $v $o, puis $w $v $o.",
	},
	questions: []string{
		"Pourquoi dit-on que $w $v $o $t ?", "Que faire quand $w $v $o $p ?", "Résumez en $n mots : $w $v $o.", "Laquelle des $n notes dit que $w $v $o ?",
	},
	lists: map[byte][]string{
		'w': {"le gardien du phare", "la cheffe d'atelier", "notre portier de nuit", "la cartographe", "le deuxième apprenti", "la chorale du port",
			"le boulanger du quai", "le comité des archives", "une voisine de la colline", "le passeur"},
		'v': {"vérifia", "égara", "commanda", "compta", "décrivit", "répara", "compara", "reporta", "repeignit", "mesura"},
		'o': {"la table des marées", "trois lanternes de laiton", "l'horaire d'hiver", "une caisse de corde bleue", "le livre d'or", "la boussole de rechange",
			"le plan du quai", "une lettre à propos du toit", "la liste des mouillages", "deux chaises pliantes"},
		'p': {"derrière le mur nord", "sur l'étagère quatre", "à l'ancienne douane", "près du quai inférieur", "sous l'horloge", "à côté du mât", "dans la salle de lecture"},
		't': {"mardi dernier", "avant la grande marée", "à l'aube", "pendant la semaine du marché", "après la tempête", "à 6 h 40", "un matin sur deux"},
	},
}
