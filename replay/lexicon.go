package replay

import "strings"

// lexicon is what a vocabulary is chosen from: frequent English words, which most vocabularies have as one token
// with the blank in front, by the part that they play. Three-letter words are many: they are one token for a
// target that counts four bytes as one.
var lexicon = [roles]string{
	opener:     `The This That Each Every Some Any One Our His Her Its My Your Their No Another Many Most All`,
	determiner: `the this that each every some any one our his her its my your their another no`,
	adjective: `big old new red hot sad odd raw dry wet bad low shy fat dim fit key mad top tan apt icy
		good great small large young long short high early late free full deep dark light clean clear cold warm cool
		soft hard rich poor wide thin thick quick slow strong weak safe real true false open close fair fine happy
		heavy huge local main major minor modern narrow natural new nice normal perfect physical plain popular
		possible private proper public pure quiet rare ready recent regular royal rough round rural secret serious
		sharp silent simple single smart smooth social solid special square stable steady straight strange sudden
		sweet tall tiny total tough urban usual vast visible vital wild wise wooden wrong yellow green blue white
		black brown gray orange purple golden silver bright broken busy calm careful cheap common complete complex
		correct daily dead different digital direct double dry eastern easy empty entire equal exact extra famous
		final flat foreign formal former fresh friendly front general gentle global`,
	noun: `man dog sun sea car day map key box cup bus sky law war art boy son eye arm leg air ice oil tea bag bed hat
		job lab fan bar bay cat cow egg ear end fox gap gas gun guy ham hen jar jet joy kid king lip log mud net
		owl pan pen pet pie pig pin pot ray rod row rug saw ski tax tie tip toe ton toy van way web win year
		house water world school state family student group country problem hand part place case week company
		system program question work government number night point home room mother area money story fact month lot
		right study book word business issue side kind head service friend father power hour game line member city
		community name president team minute idea body information back parent face others level office door health
		person art history party result change morning reason research girl guy moment teacher force education foot
		boy age policy music market sense nation plan college interest death experience effect use class control
		field development role effort rate heart drug show leader light voice wife police mind price report decision
		son view relationship town road difference value building action season society tax director position player
		record paper space ground form event official matter center couple site project activity star table need
		court oil situation cost industry figure street image phone data picture practice piece land product doctor
		wall patient worker news test movie north love support technology step baby computer type attention film tree
		source organization hair window culture chance brother energy period course summer plant opportunity term
		letter condition choice rule south husband floor campaign material population economy hospital church risk
		fire future bank west sport board subject officer rest behavior performance top goal second bed order author
		blood agency nature color store sound movement page race concern series language response animal factor decade
		article east artist scene stock career treatment approach size dog fund media sign thought list individual
		quality pressure answer resource meeting disease success cup amount ability staff character growth loss degree
		attack region television box training trade deal election feeling standard bill message analysis benefit
		lawyer section glass skill sister professor operation crime stage authority design sort knowledge gun station
		strategy truth song example environment leg dark bird river bridge garden forest engine machine driver pilot
		farmer writer singer painter captain soldier village island mountain valley ocean winter spring storm cloud
		stone metal wood bread milk fruit dinner lunch kitchen corner mirror candle clock camera journal novel poem`,
	verb: `saw met had ran got won led ate put cut let set hit bit dug fed hid lit sat was did
		made took found gave told called asked used moved lived believed held brought wrote lost paid heard included
		continued changed watched followed stopped created spoke read allowed added spent opened walked offered
		remembered loved considered bought waited served sent expected built stayed fell reached killed remained
		suggested raised passed sold required reported decided pulled returned explained carried developed hoped drove
		broke thanked received joined agreed supported caught drew chose covered described accepted avoided checked
		claimed cleaned closed collected compared completed controlled copied counted crossed defended delivered
		designed discovered divided enjoyed entered examined filled finished fixed forced formed gained handled helped
		identified ignored improved increased invited kept kicked knew learned liked marked measured needed noticed
		ordered owned painted picked planned played prepared pressed produced promised protected proved pushed removed
		repeated replaced saved shared showed signed solved started studied taught tested touched turned visited wanted
		washed`,
	adverb: `now too far yet not soon again often never always today later early there here away together quickly slowly
		quietly carefully finally really nearly almost perhaps simply clearly usually suddenly recently already`,
	preposition: `for via off out per with from into over under near behind beside before after between through across
		against along around without within inside outside toward upon of in on at by to about above below`,
	conjunction: `and but yet nor while because when so or though since until if`,
}

// marks are written without a blank in front.
var marks = [roles]string{comma: ",", stop: "."}

// candidates lists every word of the lexicon once for each part that it plays, with its blank.
func candidates() []word {
	var out []word
	for r := range roles {
		seen := map[string]bool{}
		for w := range strings.FieldsSeq(lexicon[r]) {
			if !seen[w] {
				seen[w] = true
				out = append(out, word{Text: " " + w, role: r})
			}
		}
		if marks[r] != "" {
			out = append(out, word{Text: marks[r], role: r})
		}
	}
	return out
}
