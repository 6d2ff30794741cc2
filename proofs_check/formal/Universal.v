(* The universal program: the machine's rules stand in the prompt, and attention looks them up.

   A prompt is the rules of a machine, `q s q' s' D` each, a separator, a tape, a separator. Here: the program
   (rasp/programs/universal.py, definition by definition), and `universal_same`: at every place after the table's
   separator it predicts what the machine's own program (Program.v) predicts on the text after that separator. This holds
   for every text of the machine's tokens, not only for tapes, and for every n.

   Why. Where the text has a state token, the look-up finds exactly the rules for this state and the token left of it
   (`look_up_spec`), so it returns the machine's functions (`look_up_at`); elsewhere it is masked. So the next tape is the
   machine's (`next_tape_same`). The table itself reads as filler, which is on no tape, so no key before the text is
   ever asked for (`K_table`, `grams_same`), and the table's separator counts once for the keys and once for the queries
   (`count_K_after`, `count_after`). So the same places of the text are found, with the same values. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Step Grams Lookup Packing Sharp.

(* ---- the program (rasp/programs/universal.py) -------------------------------------------------------------------- *)
Definition is_token (x : sequence) (t : nat) : sequence := tok_map x (fun z => flag (z =? t)).
Definition mask (x b : sequence) (v : nat) : sequence := where_ b x (full v).
Definition shift_or (d : nat) (x : sequence) (n : nat) : sequence :=
  kqv_mean (fun j => indices j + n) indices x Nat.eqb d.
(* the tokens at `back`, `back` + 1, .. places before, `many` of them; a start, and what lies before it, reads 0 *)
Fixpoint last_tokens (x start over : sequence) (back many : nat) : list sequence :=
  match many with
  | 0 => []
  | S many => let over := bor over (shift_or 1 start back) in
              where_ over (full 0) (shift_right x back) :: last_tokens x start over (S back) many
  end.
Definition tape_n_gram (x : sequence) (n : nat) := last_tokens x (is_token x sep) (full 0) 0 (n + 1).

Section Program.
Variable st : nat -> bool.                          (* which tokens are states *)
Variables L R : nat.                                (* the directions *)
Record rule := { is_head : sequence; next_state : sequence; next_symbol : sequence; move_R : sequence }.

Definition line (x : sequence) := cumsum (is_token x sep).
Definition cells (x : sequence) := mask x (tok_map (line x) (fun k => flag (0 <? k))) empt.
Definition look_up (x cells : sequence) : rule :=
  let is_rule := bor (is_token x L) (is_token x R) in
  let keys := [mask (shift_right x 4) is_rule sep; shift_right x 3] in
  let found v := kqv_max keys [cells; shift_right cells 1] v 0 in
  {| is_head := tok_map cells (fun z => flag (st z)); next_state := found (shift_right x 2);
     next_symbol := found (shift_right x 1); move_R := found (is_token x R) |}.
Definition shifted (r : rule) (n : nat) : rule :=
  {| is_head := shift_right (is_head r) n; next_state := shift_right (next_state r) n;
     next_symbol := shift_right (next_symbol r) n; move_R := shift_right (move_R r) n |}.
Definition next_here (cells : sequence) (r : rule) (place : nat) : sequence :=
  let here := shifted r place in let right := shifted r (place - 1) in
  where_ (is_head right) (next_symbol right) (where_ (is_head here) (next_state here) (shift_right cells place)).
Definition moves_here (r : rule) (place : nat) : sequence :=
  band (move_R (shifted r place)) (is_head (shifted r place)).
Definition next_tape_found (cells : sequence) (r : rule) (s : nat) : sequence :=
  move_head (is_head (shifted r s)) (next_here cells r s) (moves_here r s)
    (is_head (shifted r (s - 1))) (next_here cells r (s - 1)) (moves_here r (s - 1)).
Definition universal_key_tape (x : sequence) := prefix_fill (next_tape_found (cells x) (look_up x (cells x)) 3) 2 empt.
Definition next_tokens_universal (n : nat) (x : sequence) : sequence :=
  let key_tape := universal_key_tape x in
  kqv_max (cumsum (is_token key_tape sep) :: tape_n_gram key_tape n) (line x :: tape_n_gram (cells x) n)
    (next_tape_found (cells x) (look_up x (cells x)) 2) 0.
End Program.

(* ---- the gram as a list of tokens -------------------------------------------------------------------------------- *)
Lemma shift_or_spec d x n p : shift_or d x n p = if p <? n then d else x (p - n).
Proof.
  unfold shift_or, kqv_mean, selected, indices. rewrite filter_shift.
  destruct (Nat.leb_spec (0 + n) p), (Nat.ltb_spec p (0 + S p + n)), (Nat.ltb_spec p n); simpl; try lia; auto.
  rewrite Nat.add_0_r. apply Nat.div_1_r.
Qed.
Lemma mask_spec x b v p : mask x b v p = if b p =? 0 then v else x p.
Proof. unfold mask. rewrite where_spec. auto. Qed.

Lemma flag_le b : flag b <= 1.
Proof. destruct b; auto. Qed.

Definition dead (x : sequence) p back := match back with 0 => false | S b => negb (alive x p b) end.
Lemma last_tokens_spec x p : forall many back over, over p = flag (dead x p back) ->
  map (fun s => s p) (last_tokens x (is_token x 0) over back many) = map (dig x p) (seq back many).
Proof.
  induction many; intros back over Ho; simpl; auto.
  assert (E : bor over (shift_or 1 (is_token x 0) back) p = flag (negb (alive x p back))).
  { unfold bor, seq_map. rewrite Ho, shift_or_spec. unfold is_token, tok_map. destruct back as [| b].
    - rewrite Nat.sub_0_r. simpl. destruct (x p =? 0); auto.
    - rewrite alive_S. simpl dead. destruct (Nat.ltb_spec p (S b)), (Nat.leb_spec (S b) p); try lia.
      + rewrite andb_false_r. destruct (alive x p b); reflexivity.
      + destruct (alive x p b), (x (p - S b) =? 0); reflexivity. }
  rewrite IHmany by exact E. f_equal. rewrite where_spec, E, shift_spec. unfold full, dig.
  destruct (alive x p back) eqn:A; simpl; auto. destruct (Nat.ltb_spec p back); auto.
  destruct back; [lia |]. rewrite alive_S in A. destruct (Nat.leb_spec (S back) p); [lia |].
  rewrite andb_false_r in A. discriminate.
Qed.
Lemma gram_spec x n p : map (fun s => s p) (tape_n_gram x n) = map (dig x p) (seq 0 (n + 1)).
Proof. apply last_tokens_spec. reflexivity. Qed.
Lemma gram_length x n : length (tape_n_gram x n) = n + 1.
Proof.
  assert (G : forall many start over back, length (last_tokens x start over back many) = many)
    by (induction many; intros; simpl; auto).
  apply G.
Qed.
Lemma line_count x p : cumsum (is_token x 0) p = count x p.
Proof. reflexivity. Qed.

(* the look-up by count and gram *)
Lemma universal_match k x n j p :
  In j (matching (cumsum (is_token k 0) :: tape_n_gram k n) (line x :: tape_n_gram (cells x) n) p) <->
  j <= p /\ count k j = count x p /\ forall i, i <= n -> dig k j i = dig (cells x) p i.
Proof.
  unfold matching. rewrite filter_In, in_seq, same_key_spec by (simpl; rewrite !gram_length; auto).
  cbn [map]. rewrite !gram_spec. unfold line. rewrite !line_count. split.
  - intros (Hj & E). injection E as C D. split; [lia |]. split; auto. intros i Hi.
    apply (ext_in_map D). apply in_seq. lia.
  - intros (Hj & C & D). split; [lia |]. rewrite C. f_equal. apply map_ext_in. intros i Hi. apply in_seq in Hi. apply D. lia.
Qed.

(* ---- grams of the text up to a place ----------------------------------------------------------------------------- *)
Lemma alive_le f p i : alive f p i = true -> i <= p.
Proof. destruct i; intros A; [lia |]. rewrite alive_S in A. destruct (Nat.leb_spec (S i) p); auto. rewrite andb_false_r in A. discriminate. Qed.
Lemma alive_dead f p j i : j <= i -> alive f p j = false -> alive f p i = false.
Proof. intros H A. induction H; auto. rewrite alive_S, IHle. auto. Qed.
Definition upto (f : sequence) (p : nat) : sequence := fun q => if q <=? p then f q else 0.
Lemma upto_agree f p : agree f (upto f p) p.
Proof. intros q Hq. unfold upto. destruct (Nat.leb_spec q p); auto; lia. Qed.
Lemma upto_below B f p : (forall q, q <= p -> f q < B) -> forall q, upto f p q < B.
Proof. intros F q. unfold upto. destruct (Nat.leb_spec q p); auto. specialize (F p (le_n p)). lia. Qed.
Lemma H_below_upto B f p n : (forall q, q <= p -> f q < B) -> H B f p n < B ^ (n + 1).
Proof. intros F. rewrite (H_agree B f (upto f p) p n (upto_agree f p)). apply H_below, upto_below, F. Qed.
Lemma dig_agree f g p i : agree f g p -> dig f p i = dig g p i.
Proof. intros A. unfold dig. rewrite (alive_agree f g) by auto. rewrite (A (p - i)) by lia. auto. Qed.
Lemma H_inj_upto B f g p q n : (forall r, r <= p -> f r < B) -> (forall r, r <= q -> g r < B) ->
  H B f p n = H B g q n -> forall i, i <= n -> dig f p i = dig g q i.
Proof.
  intros F G E i Hi. rewrite (dig_agree f _ p i (upto_agree f p)), (dig_agree g _ q i (upto_agree g q)).
  revert i Hi. apply H_inj with (B := B); auto using upto_below.
  rewrite <- (H_agree B f (upto f p) p n (upto_agree f p)), <- (H_agree B g (upto g q) q n (upto_agree g q)). exact E.
Qed.

(* ---- the next tape looks at what was found at four places -------------------------------------------------------- *)
Section Found.
Variable cells : sequence.
Variable r : rule.
Variable q : nat.
Hypothesis head_flag : forall j, is_head r j <= 1.
Hypothesis move_flag : forall j, move_R r j <= 1.
Definition head_at d := negb (before (is_head r) d q =? 0).
Definition right_at d := negb (before (move_R r) d q =? 0).
Definition next_at d := if head_at (d - 1) then before (next_symbol r) (d - 1) q
  else if head_at d then before (next_state r) d q else before cells d q.
Lemma next_tape_found_spec s : 2 <= s -> next_tape_found cells r s q =
  if (head_at (s - 1) && negb (right_at (s - 1))) || (head_at s && right_at s) then next_at (s - 1)
  else if (head_at (s + 1) && right_at (s + 1)) || (head_at s && negb (right_at s)) then next_at (s + 1) else next_at s.
Proof.
  intros Hs.
  assert (E : forall (f : sequence) d, 1 <= q -> before f d (q - 1) = before f (d + 1) q).
  { intros f d ?. unfold before. destruct (Nat.ltb_spec (q - 1) d), (Nat.ltb_spec q (d + 1)); try lia; auto. f_equal; lia. }
  assert (Z : forall (f : sequence) d, 1 <= d -> q < 1 -> before f d q = 0)
    by (intros f d ? ?; unfold before; destruct (Nat.ltb_spec q d); auto; lia).
  assert (HF : forall d, before (is_head r) d q <= 1) by (intros d; unfold before; destruct (q <? d); auto).
  assert (MF : forall d, before (move_R r) d q <= 1) by (intros d; unfold before; destruct (q <? d); auto).
  assert (Sh : forall f d p, shift_right f d p = before f d p) by (intros; apply shift_spec).
  assert (NH : forall d, next_here cells r d q = next_at d).
  { intros d. unfold next_here, shifted, next_at, head_at. cbn [is_head next_state next_symbol move_R].
    rewrite !where_spec, !Sh. destruct (before (is_head r) (d - 1) q =? 0), (before (is_head r) d q =? 0); auto. }
  assert (LN : before (next_here cells r s) 1 q = next_at (s + 1)).
  { unfold before at 1. destruct (Nat.ltb_spec q 1) as [P | P].
    - unfold next_at, head_at. rewrite !Z by lia. auto.
    - unfold next_here, shifted, next_at, head_at. cbn [is_head next_state next_symbol move_R].
      rewrite !where_spec, !Sh, !E by lia. replace (s - 1 + 1) with s by lia. replace (s + 1 - 1) with s by lia.
      destruct (before (is_head r) s q =? 0), (before (is_head r) (s + 1) q =? 0); auto. }
  assert (LH : before (shift_right (is_head r) s) 1 q = before (is_head r) (s + 1) q).
  { unfold before at 1. destruct (Nat.ltb_spec q 1); [rewrite Z by lia; auto | rewrite Sh, E by lia; auto]. }
  assert (LM : before (moves_here r s) 1 q = Nat.land (before (move_R r) (s + 1) q) (before (is_head r) (s + 1) q)).
  { unfold before at 1. destruct (Nat.ltb_spec q 1); [rewrite !Z by lia; auto |].
    unfold moves_here, band, seq_map, shifted. cbn [is_head move_R]. rewrite !Sh, !E by lia. auto. }
  unfold next_tape_found, move_head, where3, shifted. cbn [is_head next_state next_symbol move_R].
  rewrite !where_spec. unfold tok_map. rewrite !where_spec. unfold bor, band, bandnot, seq_map, full.
  rewrite !(Sh _ 1), LN, LH, LM, !NH. unfold moves_here, band, seq_map, shifted. cbn [is_head next_state next_symbol move_R].
  rewrite !Sh. unfold head_at, right_at.
  pose proof (HF (s - 1)). pose proof (HF s). pose proof (HF (s + 1)).
  pose proof (MF (s - 1)). pose proof (MF s). pose proof (MF (s + 1)).
  destruct (before (is_head r) (s - 1) q) as [| [| ?]], (before (is_head r) s q) as [| [| ?]],
    (before (is_head r) (s + 1) q) as [| [| ?]]; try lia;
  destruct (before (move_R r) (s - 1) q) as [| [| ?]], (before (move_R r) s q) as [| [| ?]],
    (before (move_R r) (s + 1) q) as [| [| ?]]; try lia; reflexivity.
Qed.
Lemma next_tape_no_head s : 2 <= s -> head_at (s - 1) = false -> head_at s = false -> head_at (s + 1) = false ->
  next_tape_found cells r s q = before cells s q.
Proof. intros Hs A C D. rewrite next_tape_found_spec by auto. rewrite A, C, D. simpl. unfold next_at. rewrite A, C. auto. Qed.
End Found.

(* ---- a text with a table before it ------------------------------------------------------------------------------- *)
Section Text.
(* the machine in the prompt *)
Variable B : nat.
Variables st sym : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Hypothesis st_range : forall z, st z = true -> 4 <= z < B.
Hypothesis sym_range : forall z, sym z = true -> 4 <= z < B.
Hypothesis B4 : 4 <= B.
Definition ok (z : nat) := z = sep \/ z = bos \/ z = eos \/ sym z = true \/ st z = true.
(* the program's own numbering of states may have room for more of them *)
Variable stU : nat -> bool.
Hypothesis stU_ok : forall z, ok z -> stU z = st z.
Hypothesis stU_empt : stU empt = false.
Variables L R : nat.
Hypothesis LR : L <> R.
Hypothesis L_ok : ~ ok L.
Hypothesis R_ok : ~ ok R.

(* the table: rule i says what to do in state `for_state i` on `for_symbol i` *)
Variable rules : nat.
Variables for_state for_symbol then_state then_symbol then_right : nat -> nat.
Hypothesis rules1 : 1 <= rules.
Hypothesis rule_ok : forall i, i < rules -> forall z, z = for_state i \/ z = for_symbol i \/ z = then_state i \/ z = then_symbol i ->
  ok z /\ z <> sep.
Hypothesis rule_flag : forall i, i < rules -> then_right i <= 1.
Definition found (what : nat -> nat) (q a : nat) : nat :=
  largest (map what (filter (fun i => (for_state i =? q) && (for_symbol i =? a)) (seq 0 rules))).
(* the machine's functions are what the table says, 0 where it says nothing *)
Hypothesis ns_found : forall q a, st q = true -> ok a -> ns q a = found then_state q a.
Hypothesis ny_found : forall q a, st q = true -> ok a -> ny q a = found then_symbol q a.
Hypothesis mv_found : forall q a, st q = true -> ok a -> mv q a = (found then_right q a =? 1).

(* the text: the table, a separator, and tokens of the machine up to place N *)
Variable x : sequence.
Notation P := (5 * rules).
Hypothesis x_rule : forall i, i < rules -> x (5 * i) = for_state i /\ x (5 * i + 1) = for_symbol i /\
  x (5 * i + 2) = then_state i /\ x (5 * i + 3) = then_symbol i /\ x (5 * i + 4) = if then_right i =? 1 then R else L.
Hypothesis x_sep : x P = sep.
Definition after (p : nat) := x (P + 1 + p).
Notation y := after.
Variable N : nat.
Hypothesis y_ok : forall p, p <= N -> ok (y p).

Lemma ok_0 : ok 0. Proof. left; auto. Qed.
Lemma ok_below z : ok z -> z < B.
Proof. intros [-> | [-> | [-> | [H | H]]]]; try lia; [apply sym_range in H | apply st_range in H]; lia. Qed.
Lemma ok_not_empt z : ok z -> z <> empt.
Proof. intros [-> | [-> | [-> | [H | H]]]]; try lia; [apply sym_range in H | apply st_range in H]; lia. Qed.
Lemma st_ok z : st z = true -> ok z. Proof. unfold ok. auto. Qed.
Lemma stU_0 : stU 0 = false.
Proof. rewrite stU_ok by apply ok_0. destruct (st 0) eqn:E; auto. apply st_range in E. lia. Qed.
Lemma L_0 : L <> 0. Proof. intros ->. apply L_ok, ok_0. Qed.
Lemma R_0 : R <> 0. Proof. intros ->. apply R_ok, ok_0. Qed.

(* a place of the table is a token of a rule *)
Lemma table_place j : j < P -> exists i, i < rules /\
  ((j = 5 * i + 4 /\ (x j = L \/ x j = R)) \/ (j < 5 * i + 4 /\ ok (x j) /\ x j <> 0)).
Proof.
  intros Hj. exists (j / 5). pose proof (Nat.div_mod j 5 ltac:(lia)). pose proof (Nat.mod_upper_bound j 5 ltac:(lia)).
  set (i := j / 5) in *. assert (i < rules) as Hi by lia. split; auto.
  destruct (x_rule i Hi) as (X0 & X1 & X2 & X3 & X4). pose proof (rule_ok i Hi) as O.
  destruct (j mod 5) as [| [| [| [| [| ?]]]]]; try lia; [right | right | right | right | left].
  - replace j with (5 * i) by lia. rewrite X0. split; [lia | apply O; auto].
  - replace j with (5 * i + 1) by lia. rewrite X1. split; [lia | apply O; auto].
  - replace j with (5 * i + 2) by lia. rewrite X2. split; [lia | apply O; auto].
  - replace j with (5 * i + 3) by lia. rewrite X3. split; [lia | apply O; auto].
  - replace j with (5 * i + 4) by lia. rewrite X4. split; [lia |]. destruct (then_right i =? 1); auto.
Qed.
Lemma table_nonzero j : j < P -> x j <> 0.
Proof.
  intros Hj. destruct (table_place j Hj) as (i & _ & [(_ & [-> | ->]) | (_ & _ & H)]); auto using L_0, R_0.
Qed.

Lemma count_table j : j < P -> count x j = 0.
Proof.
  induction j; intros Hj.
  - rewrite count_0. destruct (Nat.eqb_spec (x 0) 0) as [E | E]; auto. apply table_nonzero in E; [tauto | auto].
  - rewrite count_S, IHj by lia. destruct (Nat.eqb_spec (x (S j)) 0) as [E | E]; auto. apply table_nonzero in E; [tauto | auto].
Qed.
Lemma count_sep : count x P = 1.
Proof.
  replace P with (S (P - 1)) at 1 by lia. rewrite count_S, count_table by lia. replace (S (P - 1)) with P by lia.
  rewrite x_sep. reflexivity.
Qed.
Lemma count_after p : count x (P + 1 + p) = 1 + count y p.
Proof.
  induction p.
  - replace (P + 1 + 0) with (S P) by lia. rewrite count_S, count_sep, count_0. unfold after.
    replace (P + 1 + 0) with (S P) by lia. auto.
  - replace (P + 1 + S p) with (S (P + 1 + p)) by lia. rewrite count_S, IHp, count_S. unfold after.
    replace (P + 1 + S p) with (S (P + 1 + p)) by lia. lia.
Qed.

Notation c := (cells x).
Lemma cells_spec j : c j = if count x j =? 0 then empt else x j.
Proof.
  unfold cells. rewrite mask_spec. unfold tok_map, line. rewrite line_count. destruct (count x j); reflexivity.
Qed.
Lemma cells_table j : j < P -> c j = empt.
Proof. intros. rewrite cells_spec, count_table by auto. auto. Qed.
Lemma cells_sep : c P = 0.
Proof. rewrite cells_spec, count_sep. exact x_sep. Qed.
Lemma cells_after p : c (P + 1 + p) = y p.
Proof. rewrite cells_spec, count_after. reflexivity. Qed.

(* ---- attention finds the rule ------------------------------------------------------------------------------------ *)
Lemma same_largest (l m : list nat) : (forall v, In v l -> v = 0 \/ In v m) -> (forall v, In v m -> v = 0 \/ In v l) -> largest l = largest m.
Proof.
  intros A C. apply Nat.le_antisymm; apply max_le; intros v I.
  - destruct (A v I); [lia | apply le_max; auto].
  - destruct (C v I); [lia | apply le_max; auto].
Qed.
Definition is_rule := bor (is_token x L) (is_token x R).
Lemma rule_place j p : p <= N -> j <= P + 1 + p -> is_rule j <> 0 -> exists i, i < rules /\ j = 5 * i + 4.
Proof.
  intros Hp Hj H. assert (x j = L \/ x j = R) as E.
  { unfold is_rule, bor, is_token, seq_map, tok_map in H.
    destruct (Nat.eqb_spec (x j) L), (Nat.eqb_spec (x j) R); auto. simpl in H. tauto. }
  destruct (Nat.lt_ge_cases j P) as [T | T].
  - destruct (table_place j T) as (i & Hi & [(? & _) | (_ & O & _)]); [eauto |].
    destruct E as [E | E]; rewrite E in O; tauto.
  - exfalso. destruct (Nat.eq_dec j P) as [-> | ?].
    + rewrite x_sep in E. destruct E as [E | E]; [apply L_0 | apply R_0]; auto.
    + pose proof (y_ok (j - (P + 1)) ltac:(lia)) as O. unfold after in O. replace (P + 1 + (j - (P + 1))) with j in O by lia.
      destruct E as [E | E]; rewrite E in O; tauto.
Qed.
Lemma look_up_spec p (v : sequence) what : p <= N -> st (y p) = true -> (forall i, i < rules -> v (5 * i + 4) = what i) ->
  kqv_max [mask (shift_right x 4) is_rule sep; shift_right x 3] [c; shift_right c 1] v 0 (P + 1 + p) =
  found what (y p) (before y 1 p).
Proof.
  intros Hp Hs Hv. rewrite kqv_max_0. unfold found.
  assert (Q : shift_right c 1 (P + 1 + p) = before y 1 p).
  { rewrite shift_spec. unfold before. destruct (Nat.ltb_spec (P + 1 + p) 1); [lia |]. destruct (Nat.ltb_spec p 1).
    - replace (P + 1 + p - 1) with P by lia. apply cells_sep.
    - replace (P + 1 + p - 1) with (P + 1 + (p - 1)) by lia. apply cells_after. }
  assert (M : forall j, In j (matching [mask (shift_right x 4) is_rule sep; shift_right x 3] [c; shift_right c 1] (P + 1 + p)) <->
    exists i, i < rules /\ j = 5 * i + 4 /\ for_state i = y p /\ for_symbol i = before y 1 p).
  { intros j. unfold matching. rewrite filter_In, in_seq, same_key_spec by auto. cbn [map]. rewrite cells_after, Q, mask_spec. split.
    - intros (Hj & E). injection E as E1 E2. destruct (Nat.eqb_spec (is_rule j) 0) as [Z | Z].
      { rewrite <- E1 in Hs. rewrite (stU_ok 0 ok_0) in * || idtac. pose proof (st_range _ Hs). lia. }
      destruct (rule_place j p Hp ltac:(lia) Z) as (i & Hi & ->). exists i. destruct (x_rule i Hi) as (X0 & X1 & _).
      rewrite shift_spec in E1, E2. destruct (Nat.ltb_spec (5 * i + 4) 4), (Nat.ltb_spec (5 * i + 4) 3); try lia.
      replace (5 * i + 4 - 4) with (5 * i) in E1 by lia. replace (5 * i + 4 - 3) with (5 * i + 1) in E2 by lia.
      repeat split; auto; congruence.
    - intros (i & Hi & -> & E1 & E2). split; [lia |]. destruct (x_rule i Hi) as (X0 & X1 & _ & _ & X4).
      assert (is_rule (5 * i + 4) <> 0) as Z.
      { unfold is_rule, bor, is_token, seq_map, tok_map. rewrite X4. destruct (then_right i =? 1); rewrite ?Nat.eqb_refl.
        - destruct (R =? L); discriminate.
        - destruct (L =? R); discriminate. }
      destruct (Nat.eqb_spec (is_rule (5 * i + 4)) 0); [tauto |].
      rewrite !shift_spec. destruct (Nat.ltb_spec (5 * i + 4) 4), (Nat.ltb_spec (5 * i + 4) 3); try lia.
      replace (5 * i + 4 - 4) with (5 * i) by lia. replace (5 * i + 4 - 3) with (5 * i + 1) by lia. congruence. }
  apply same_largest; intros u I; apply in_map_iff in I as (j & <- & I); right.
  - apply M in I as (i & Hi & -> & E1 & E2). rewrite Hv by auto. apply in_map, filter_In. rewrite in_seq, andb_true_iff, !Nat.eqb_eq. repeat split; auto; lia.
  - apply filter_In in I as [I E]. apply in_seq in I. rewrite andb_true_iff, !Nat.eqb_eq in E. destruct E.
    rewrite <- Hv by lia. apply in_map, M. exists j. repeat split; auto; lia.
Qed.

(* ---- the next tape ----------------------------------------------------------------------------------------------- *)
Notation r := (look_up stU L R x c).
Lemma ok_before d p : p <= N -> ok (before y d p).
Proof. intros. unfold before. destruct (p <? d); [apply ok_0 | apply y_ok; lia]. Qed.
Lemma found_flag q a : found then_right q a <= 1.
Proof.
  apply max_le. intros v I. apply in_map_iff in I as (i & <- & I). apply filter_In in I as [I _]. apply in_seq in I.
  apply rule_flag. lia.
Qed.
Lemma look_up_head j : is_head r j = flag (stU (c j)). Proof. reflexivity. Qed.
Lemma look_up_at p : p <= N -> st (y p) = true ->
  next_state r (P + 1 + p) = ns (y p) (before y 1 p) /\ next_symbol r (P + 1 + p) = ny (y p) (before y 1 p) /\
  move_R r (P + 1 + p) = flag (mv (y p) (before y 1 p)).
Proof.
  intros Hp Hs. pose proof (ok_before 1 p Hp). unfold look_up. cbn [next_state next_symbol move_R]. fold is_rule.
  rewrite (look_up_spec p _ then_state), (look_up_spec p _ then_symbol), (look_up_spec p _ then_right); auto.
  - rewrite ns_found, ny_found, mv_found by auto. repeat split; auto.
    pose proof (found_flag (y p) (before y 1 p)). destruct (found then_right _ _) as [| [| ?]]; try lia; auto.
  - intros i Hi. destruct (x_rule i Hi) as (_ & _ & _ & _ & X). unfold is_token, tok_map. rewrite X.
    pose proof (rule_flag i Hi). destruct (Nat.eqb_spec (then_right i) 1) as [-> | ?]; [rewrite Nat.eqb_refl; auto |].
    destruct (Nat.eqb_spec L R); [tauto |]. unfold flag. lia.
  - intros i Hi. destruct (x_rule i Hi) as (_ & _ & _ & X & _). rewrite shift_spec.
    destruct (Nat.ltb_spec (5 * i + 4) 1); [lia |]. replace (5 * i + 4 - 1) with (5 * i + 3) by lia. auto.
  - intros i Hi. destruct (x_rule i Hi) as (_ & _ & X & _). rewrite shift_spec.
    destruct (Nat.ltb_spec (5 * i + 4) 2); [lia |]. replace (5 * i + 4 - 2) with (5 * i + 2) by lia. auto.
Qed.
Lemma look_up_head_flag j : is_head r j <= 1.
Proof. rewrite look_up_head. apply flag_le. Qed.
Lemma look_up_move_flag j : move_R r j <= 1.
Proof.
  unfold look_up. cbn [move_R]. rewrite kqv_max_0. apply max_le. intros v I. apply in_map_iff in I as (i & <- & _).
  apply flag_le.
Qed.

Lemma head_early d q : q <= P \/ P + 1 + d > q -> head_at r q d = false.
Proof.
  intros Hq. unfold head_at, before. destruct (Nat.ltb_spec q d); auto. rewrite look_up_head.
  destruct (Nat.lt_trichotomy (q - d) P) as [H0 | [H0 | H0]].
  - rewrite cells_table, stU_empt by auto. auto.
  - rewrite H0, cells_sep, stU_0. auto.
  - lia.
Qed.
Lemma head_late d p : p <= N -> head_at r (P + 1 + p) d = st (before y d p).
Proof.
  intros Hp. destruct (Nat.le_gt_cases d p) as [D | D].
  - unfold head_at, before. destruct (Nat.ltb_spec (P + 1 + p) d), (Nat.ltb_spec p d); try lia. rewrite look_up_head.
    replace (P + 1 + p - d) with (P + 1 + (p - d)) by lia. rewrite cells_after, stU_ok by (apply y_ok; lia).
    destruct (st _); auto.
  - rewrite head_early by lia. unfold before. destruct (Nat.ltb_spec p d); [| lia].
    rewrite <- stU_ok by apply ok_0. rewrite stU_0. auto.
Qed.
Lemma found_late d p : p <= N -> st (before y d p) = true ->
  before (next_state r) d (P + 1 + p) = ns (before y d p) (before y (d + 1) p) /\
  before (next_symbol r) d (P + 1 + p) = ny (before y d p) (before y (d + 1) p) /\
  right_at r (P + 1 + p) d = mv (before y d p) (before y (d + 1) p).
Proof.
  intros Hp Hs. destruct (Nat.le_gt_cases d p) as [D | D].
  2:{ unfold before in Hs. destruct (Nat.ltb_spec p d); [| lia]. apply st_range in Hs. lia. }
  assert (BY : before y d p = y (p - d)) by (unfold before; destruct (Nat.ltb_spec p d); auto; lia).
  assert (BY1 : before y (d + 1) p = before y 1 (p - d)).
  { unfold before. destruct (Nat.ltb_spec p (d + 1)), (Nat.ltb_spec (p - d) 1); try lia; auto. f_equal. lia. }
  assert (BX : forall f, before f d (P + 1 + p) = f (P + 1 + (p - d))).
  { intros f. unfold before. destruct (Nat.ltb_spec (P + 1 + p) d); [lia |]. f_equal. lia. }
  rewrite BY in *. rewrite BY1. destruct (look_up_at (p - d) ltac:(lia) Hs) as (A & C & D1).
  unfold right_at. rewrite !BX, A, C, D1. repeat split; auto. destruct (mv _ _); auto.
Qed.
Lemma cells_late d p : d <= p + 1 -> before c d (P + 1 + p) = before y d p.
Proof.
  intros D. unfold before. destruct (Nat.ltb_spec (P + 1 + p) d), (Nat.ltb_spec p d); try lia.
  - replace (P + 1 + p - d) with P by lia. apply cells_sep.
  - replace (P + 1 + p - d) with (P + 1 + (p - d)) by lia. apply cells_after.
Qed.

Lemma next_tape_same s p : p <= N -> 2 <= s -> s <= p + 1 ->
  next_tape_found c r s (P + 1 + p) = next_tape st ns ny mv y s p.
Proof.
  intros Hp Hs Hsp. rewrite next_tape_found_spec by auto using look_up_head_flag, look_up_move_flag.
  rewrite (next_tape_five B st ns ny mv st_range) by auto. unfold five, next_at.
  replace (s - 1 - 1) with (s - 2) by lia. replace (s + 1 - 1) with s by lia.
  pose proof (found_late (s + 1) p Hp) as F1. pose proof (found_late s p Hp) as F2.
  pose proof (found_late (s - 1) p Hp) as F3. pose proof (found_late (s - 2) p Hp) as F4.
  replace (s + 1 + 1) with (s + 2) in F1 by lia. replace (s - 1 + 1) with s in F3 by lia.
  replace (s - 2 + 1) with (s - 1) in F4 by lia.
  rewrite !head_late by auto. rewrite (cells_late s), (cells_late (s - 1)) by lia.
  destruct (st (before y (s + 1) p)), (st (before y s p)), (st (before y (s - 1) p)), (st (before y (s - 2) p));
    repeat match goal with F : true = true -> _ |- _ => destruct (F eq_refl) as (? & ? & ?); clear F
                      | F : false = true -> _ |- _ => clear F end;
    cbn [andb orb]; repeat match goal with E : right_at _ _ _ = _ |- _ => rewrite E; clear E
                                         | E : before _ _ _ = _ |- _ => rewrite E; clear E end;
    repeat match goal with |- context [mv ?a ?b] => destruct (mv a b) end; reflexivity.
Qed.

(* ---- the keys ---------------------------------------------------------------------------------------------------- *)
Notation K := (universal_key_tape stU L R x).
Notation K' := (prefix_fill (next_tape st ns ny mv y 3) 2 empt).
Lemma K_table q : q <= P -> K q = if q =? 2 then 0 else empt.
Proof.
  intros Hq. unfold universal_key_tape. rewrite fill_spec, next_tape_no_head by
    (auto using look_up_head_flag, look_up_move_flag; apply head_early; lia).
  destruct (Nat.ltb_spec q 2), (Nat.eqb_spec q 2); try lia; auto; unfold before; destruct (Nat.ltb_spec q 3); try lia; auto.
  apply cells_table. lia.
Qed.
Lemma K_after p : p <= N -> K (P + 1 + p) = K' p.
Proof.
  intros Hp. unfold universal_key_tape. rewrite !fill_spec. destruct (Nat.ltb_spec (P + 1 + p) 2); [lia |].
  destruct (Nat.ltb_spec p 2).
  - rewrite next_tape_no_head by (auto using look_up_head_flag, look_up_move_flag; apply head_early; lia).
    unfold before. destruct (Nat.ltb_spec (P + 1 + p) 3); [lia |]. apply cells_table. lia.
  - apply next_tape_same; lia.
Qed.
Lemma count_K_table q : q <= P -> count K q = if q <? 2 then 0 else 1.
Proof.
  induction q; intros Hq.
  - rewrite count_0, K_table by lia. auto.
  - rewrite count_S, IHq, K_table by lia.
    destruct (Nat.ltb_spec q 2), (Nat.ltb_spec (S q) 2), (Nat.eqb_spec (S q) 2); simpl; lia.
Qed.
Lemma count_K_after p : p <= N -> count K (P + 1 + p) = 1 + count K' p.
Proof.
  induction p; intros Hp.
  - replace (P + 1 + 0) with (S P) by lia. rewrite count_S, count_K_table, count_0 by lia.
    replace (S P) with (P + 1 + 0) by lia. rewrite K_after by lia. destruct (Nat.ltb_spec P 2); lia.
  - replace (P + 1 + S p) with (S (P + 1 + p)) by lia. rewrite !count_S, IHp by lia.
    replace (S (P + 1 + p)) with (P + 1 + S p) by lia. rewrite K_after by lia. lia.
Qed.

(* The tape being written reads the same: its gram ends at the table's separator. *)
Lemma alive_cells p i : alive c (P + 1 + p) i = alive y p i.
Proof.
  induction i; [simpl; rewrite cells_after; auto |]. rewrite !alive_S, IHi. destruct (alive y p i) eqn:A; auto.
  apply alive_le in A. cbn [andb]. destruct (Nat.leb_spec (S i) p), (Nat.leb_spec (S i) (P + 1 + p)); try lia; cbn [andb].
  - replace (P + 1 + p - S i) with (P + 1 + (p - S i)) by lia. rewrite cells_after. auto.
  - replace (P + 1 + p - S i) with P by lia. rewrite cells_sep. auto.
Qed.
Lemma dig_cells p i : dig c (P + 1 + p) i = dig y p i.
Proof.
  unfold dig. rewrite alive_cells. destruct (alive y p i) eqn:A; auto. apply alive_le in A.
  replace (P + 1 + p - i) with (P + 1 + (p - i)) by lia. apply cells_after.
Qed.
Lemma dig_not_empt p i : p <= N -> dig y p i <> empt.
Proof. intros Hp. unfold dig. destruct alive; [apply ok_not_empt, y_ok; lia | lia]. Qed.

(* So do the keys, as far as the text goes; before it they hold the filler, which no gram of a tape does. *)
Lemma alive_K p i : p <= N -> i <= p -> alive K (P + 1 + p) i = alive K' p i.
Proof.
  intros Hp. induction i; intros Hi; [cbn [alive]; rewrite K_after; auto |].
  rewrite !alive_S, IHi by lia. destruct (Nat.leb_spec (S i) p), (Nat.leb_spec (S i) (P + 1 + p)); try lia.
  replace (P + 1 + p - S i) with (P + 1 + (p - S i)) by lia. rewrite K_after by lia. auto.
Qed.
Lemma dig_K p i : p <= N -> i <= p -> dig K (P + 1 + p) i = dig K' p i.
Proof.
  intros Hp Hi. unfold dig. rewrite alive_K by auto. destruct (alive K' p i); auto.
  replace (P + 1 + p - i) with (P + 1 + (p - i)) by lia. apply K_after. lia.
Qed.
Lemma grams_same n p j : p <= N -> j <= N ->
  ((forall i, i <= n -> dig K (P + 1 + j) i = dig y p i) <-> (forall i, i <= n -> dig K' j i = dig y p i)).
Proof.
  intros Hp Hj. destruct (Nat.le_gt_cases n j) as [Hn | Hn].
  { split; intros E i Hi; [rewrite <- dig_K by lia | rewrite dig_K by lia]; auto. }
  destruct (alive K' j j) eqn:A.
  - assert (F : dig K' j j = empt).
    { unfold dig. rewrite A, Nat.sub_diag, fill_spec. auto. }
    split; intros E; exfalso; apply (dig_not_empt p j Hp); [rewrite <- E, dig_K by lia | rewrite <- E by lia]; exact F.
  - assert (D : forall i, dig K (P + 1 + j) i = dig K' j i).
    { intros i. destruct (Nat.le_gt_cases i j) as [Hi | Hi]; [apply dig_K; auto |]. unfold dig.
      rewrite (alive_dead K' j j i), (alive_dead K (P + 1 + j) j i) by (rewrite ?alive_K by auto; auto; lia). auto. }
    split; intros E i Hi; [rewrite <- D | rewrite D]; auto.
Qed.

(* what the program writes is a token of the machine *)
Lemma largest_in l : largest l = 0 \/ In (largest l) l.
Proof.
  unfold largest. induction l; simpl; auto. destruct (Nat.max_spec a (fold_right Nat.max 0 l)) as [[_ ->] | [_ ->]]; auto.
  destruct IHl; auto.
Qed.
Lemma found_ok what q a : (forall i, i < rules -> ok (what i)) -> ok (found what q a).
Proof.
  intros O. unfold found. destruct (largest_in (map what (filter (fun i => (for_state i =? q) && (for_symbol i =? a)) (seq 0 rules))))
    as [-> | I]; [apply ok_0 |]. apply in_map_iff in I as (i & <- & I). apply filter_In in I as [I _]. apply in_seq in I.
  apply O. lia.
Qed.
Lemma ns_ok q a : st q = true -> ok a -> ok (ns q a).
Proof. intros. rewrite ns_found by auto. apply found_ok. intros i Hi. apply (rule_ok i Hi). auto. Qed.
Lemma ny_ok q a : st q = true -> ok a -> ok (ny q a).
Proof. intros. rewrite ny_found by auto. apply found_ok. intros i Hi. apply (rule_ok i Hi). auto. Qed.
Lemma next_tape_ok s p : 2 <= s -> p <= N -> ok (next_tape st ns ny mv y s p).
Proof.
  intros Hs Hp. rewrite (next_tape_five B st ns ny mv st_range) by auto.
  pose proof (ok_before (s + 2) p Hp). pose proof (ok_before (s + 1) p Hp). pose proof (ok_before s p Hp).
  pose proof (ok_before (s - 1) p Hp). pose proof (ok_before (s - 2) p Hp). unfold five.
  destruct (st (before y (s + 1) p)) eqn:?, (st (before y s p)) eqn:?, (st (before y (s - 1) p)) eqn:?,
    (st (before y (s - 2) p)) eqn:?; cbn [andb orb];
  repeat match goal with |- context [if ?b then _ else _] => destruct b end; auto using ns_ok, ny_ok.
Qed.
Lemma K'_below p : p <= N -> K' p < B.
Proof.
  intros Hp. rewrite fill_spec. destruct (p <? 2); [lia |]. apply ok_below, next_tape_ok; lia.
Qed.

(* ---- the universal program is the machine's program on the text after the table ---------------------------------- *)
Theorem universal_same k n p : k <> Paper -> p <= N ->
  next_tokens_universal stU L R n x (P + 1 + p) = next_tokens B st ns ny mv k n y p.
Proof.
  intros Hk Hp. unfold next_tokens_universal, next_tokens. rewrite !kqv_max_0.
  assert (M : forall j, In j (matching (hash_n_gram_iter B k K' n) (hash_n_gram_iter B k y n) p) <->
    j <= p /\ count K' j = count y p /\ forall i, i <= n -> dig K' j i = dig y p i).
  { intros j. rewrite matching_spec. split; intros (Hj & E); split; auto.
    - unfold key_at in E. apply pack_inj in E as [C D]; [| lia | | | tauto].
      + split; auto. apply H_inj_upto with (B := B); auto; intros q Hq; [apply K'_below | apply ok_below, y_ok]; lia.
      + apply H_below_upto. intros q Hq. apply K'_below. lia.
      + apply H_below_upto. intros q Hq. apply ok_below, y_ok. lia.
    - unfold key_at. destruct E as [C D]. rewrite C, (H_ext B K' y j p n D). auto. }
  assert (U : forall j, In j (matching (cumsum (is_token K 0) :: tape_n_gram K n) (line x :: tape_n_gram c n) (P + 1 + p)) <->
    exists i, j = P + 1 + i /\ In i (matching (hash_n_gram_iter B k K' n) (hash_n_gram_iter B k y n) p)).
  { intros j. rewrite universal_match, count_after. split.
    - intros (Hj & C & D). destruct (Nat.le_gt_cases j P) as [Hi | Hi].
      + exfalso. pose proof (D 0 ltac:(lia)) as D0. rewrite dig_cells, !dig_0, K_table in D0 by auto.
        rewrite count_K_table in C by auto. destruct (Nat.eqb_spec j 2) as [-> | ?].
        * assert (1 <= count y p); [| simpl in C; lia]. destruct p; [rewrite count_0 | rewrite count_S]; rewrite <- D0; simpl; lia.
        * apply (ok_not_empt (y p)); auto.
      + exists (j - (P + 1)). split; [lia |]. replace j with (P + 1 + (j - (P + 1))) in C, D by lia.
        rewrite count_K_after in C by lia. apply M. split; [lia |]. split; [lia |].
        apply grams_same; try lia. intros i Hi'. rewrite D, dig_cells by auto. auto.
    - intros (i & -> & I). apply M in I as (Hi & C & D). split; [lia |]. rewrite count_K_after by lia. split; [lia |].
      intros m Hm. rewrite dig_cells. apply (proj2 (grams_same n p i Hp ltac:(lia)) D m Hm). }
  assert (V : forall i, In i (matching (hash_n_gram_iter B k K' n) (hash_n_gram_iter B k y n) p) ->
    next_tape_found c r 2 (P + 1 + i) = next_tape st ns ny mv y 2 i).
  { intros i I. apply M in I as (Hi & _ & D). apply next_tape_same; try lia. destruct i; [| lia]. exfalso.
    specialize (D 0 ltac:(lia)). rewrite !dig_0, fill_spec in D. apply (ok_not_empt (y p)); auto. }
  apply same_largest; intros v I; right; apply in_map_iff in I as (j & <- & I).
  - apply U in I as (i & -> & I). rewrite V by auto. apply in_map, I.
  - rewrite <- V by auto. apply in_map, U. eauto.
Qed.
Lemma written_ok n p : p <= N -> ok (next_tokens_universal stU L R n x (P + 1 + p)).
Proof.
  intros Hp. rewrite (universal_same Tuple) by (auto; discriminate). unfold next_tokens. rewrite kqv_max_0.
  match goal with |- ok (largest ?l) => destruct (largest_in l) as [-> | I] end; [apply ok_0 |].
  apply in_map_iff in I as (j & <- & I). apply matching_spec in I as [I _]. apply next_tape_ok; lia.
Qed.
End Text.
