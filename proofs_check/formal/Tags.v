(* Every machine, not most: cells with tags (`make_simulable`).

   Each cell of the tape gets a tag that is never overwritten: a symbol becomes a pair (symbol, tag), and a rule that
   writes b over a writes (b, tag) over (a, tag). If no n+1 neighbours of the row of tags repeat, no tape of the tagged
   machine repeats an (n+1)-gram, whatever is written and wherever the head stands: a gram with `bos`, `eos` or the state
   token in it stands once, because these do; any other consists of neighbouring cells, and shows their tags.
   So by the sharp theorem the program simulates the tagged machine: for ever with the unbounded packing, base^n steps
   with the paper's. And the tagged run with the tags erased is the run of the machine one started from.

   First for any way to write pairs as tokens (section `Tagged`), then for the token ids of `rasp.machines.simulable`, and last
   with the rows of DeBruijn.v: k tags for any number of cells up to k^(n+1) + n. *)
From Coq Require Import Arith Lia List Bool ZArith.
Import ListNotations.
Require Import Rasp Machine Program Sharp Graph DeBruijn.

(* with the head at place h, the cell that stands at place c *)
Definition cell_at (h c : nat) := if c <? h then c - 1 else c - 2.
Lemma cell_at_shift h e m n : 1 <= h -> m <= n -> 0 < e -> e + n < h \/ h < e -> cell_at h (e + m) = cell_at h e + m.
Proof. intros. unfold cell_at. destruct (Nat.ltb_spec e h), (Nat.ltb_spec (e + m) h); lia. Qed.
Lemma cell_at_order h a b n : 1 <= h -> a < b -> 0 < a -> a + n < h \/ h < a -> b + n < h \/ h < b -> cell_at h a < cell_at h b.
Proof. intros. unfold cell_at. destruct (Nat.ltb_spec a h), (Nat.ltb_spec b h); lia. Qed.
Lemma cell_at_last w h b n : 4 <= w -> 0 < b -> 1 <= h <= w - 2 -> b + n < h \/ h < b -> b + n < last_cell w h ->
  cell_at h b + n < w - 4.
Proof. intros. unfold cell_at, last_cell in *. destruct (Nat.ltb_spec b h); cases; lia. Qed.

Section Tagged.
(* the machine one starts from *)
Variables st sym : nat -> bool.
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
(* the tagged machine *)
Variable B' : nat.
Variables st' sym' : nat -> bool.
Variables ns' ny' : nat -> nat -> nat.
Variable mv' : nat -> nat -> bool.
Hypothesis st_range' : forall z, st' z = true -> 4 <= z < B'.
Hypothesis sym_range' : forall z, sym' z = true -> 4 <= z < B'.
Hypothesis st_sym' : forall z, st' z = true -> sym' z = false.
Hypothesis ns_state' : forall q a, st' q = true -> sym' a = true \/ a = 1 \/ a = 2 -> st' (ns' q a) = true.
Hypothesis ny_sym' : forall q a, st' q = true -> sym' a = true -> sym' (ny' q a) = true.
Hypothesis ny_bos' : forall q, st' q = true -> ny' q 1 = 1.
Hypothesis ny_eos' : forall q, st' q = true -> ny' q 2 = 2.
Hypothesis mv_bos' : forall q, st' q = true -> mv' q 1 = true.
Hypothesis mv_eos' : forall q, st' q = true -> mv' q 2 = false.
(* a tagged symbol is a plain one and a tag; rules work on the plain part and keep the tag *)
Variables plain tag : nat -> nat.
Hypothesis ns_plain : forall q a, st' q = true -> sym' a = true \/ a = 1 \/ a = 2 ->
  plain (ns' q a) = ns (plain q) (plain a).
Hypothesis ny_plain : forall q a, st' q = true -> sym' a = true \/ a = 1 \/ a = 2 ->
  plain (ny' q a) = ny (plain q) (plain a).
Hypothesis mv_plain : forall q a, st' q = true -> sym' a = true \/ a = 1 \/ a = 2 ->
  mv' q a = mv (plain q) (plain a).
Hypothesis tag_kept : forall q a, st' q = true -> sym' a = true -> tag (ny' q a) = tag a.

Variables w h0 : nat.
Variable T0' : tape.
Hypothesis start' : wf st' sym' w T0' h0.
Notation T' := (Machine.T ns' ny' mv' T0' h0).
Notation hd' := (Machine.hd ns' ny' mv' T0' h0).
Notation trace' := (Machine.trace ns' ny' mv' w T0' h0).

Lemma wf' t : wf st' sym' w (T' t) (hd' t).
Proof. eapply wf_T; eassumption. Qed.

(* ---- tags erased, it is the run of the machine ------------------------------------------------------------------- *)
Variable T0 : tape.
Hypothesis start_plain : forall c, c < w -> T0 c = plain (T0' c).
Notation T := (Machine.T ns ny mv T0 h0).
Notation hd := (Machine.hd ns ny mv T0 h0).

Theorem tags_erased t : hd t = hd' t /\ forall c, c < w -> T t c = plain (T' t c).
Proof.
  induction t as [| t [Eh E]]; [split; auto |].
  pose proof (wf' t) as W. pose proof (wf_under _ _ _ _ _ W) as U. destruct W as [Hw Hh Hs _ _ _ _].
  assert (hd (S t) = if mv (T t (hd t)) (T t (hd t - 1)) then hd t + 1 else hd t - 1) as EH.
  { unfold Machine.hd at 1. simpl. unfold step. fold (Machine.T ns ny mv T0 h0 t) (Machine.hd ns ny mv T0 h0 t).
    destruct mv; auto. }
  assert (hd' (S t) = if mv' (T' t (hd' t)) (T' t (hd' t - 1)) then hd' t + 1 else hd' t - 1) as EH'.
  { unfold Machine.hd at 1. simpl. unfold step. fold (Machine.T ns' ny' mv' T0' h0 t) (Machine.hd ns' ny' mv' T0' h0 t).
    destruct mv'; auto. }
  rewrite EH, EH'. rewrite !Eh, !E, mv_plain by (auto; lia). split; [auto |].
  intros c Hc. rewrite !T_S. cbv zeta. rewrite !Eh, !E, mv_plain by (auto; lia).
  rewrite <- ny_plain, <- ns_plain by auto.
  destruct (mv (plain _) _), (c =? hd' t - 1), (c =? hd' t), (c =? hd' t + 1); auto.
Qed.

(* ---- every tape shows the row of tags ---------------------------------------------------------------------------- *)
Variable row : nat -> nat.                          (* the tag of each cell; there are w - 4 cells *)
Definition shows_row (T : tape) (h : nat) :=
  forall c, 0 < c < w - 1 -> c <> h -> c <> last_cell w h -> tag (T c) = row (cell_at h c).
Hypothesis start_row : shows_row T0' h0.

Lemma row_kept t : shows_row (T' t) (hd' t).
Proof.
  clear ns_plain ny_plain mv_plain.
  induction t as [| t IH]; [exact start_row |]. pose proof (wf' t) as W. pose proof (wf' (S t)) as W1.
  assert (hd' (S t) = if mv' (T' t (hd' t)) (T' t (hd' t - 1)) then hd' t + 1 else hd' t - 1) as EH.
  { unfold Machine.hd at 1. simpl. unfold step. fold (Machine.T ns' ny' mv' T0' h0 t) (Machine.hd ns' ny' mv' T0' h0 t).
    destruct mv'; auto. }
  pose proof W as [Hw Hh Hs Hb Hp He Hy]. pose proof (wf_h _ _ _ _ _ W1) as Hh1.
  set (h := hd' t) in *. intros c Hc. rewrite T_S. cbv zeta. fold h. rewrite EH in Hh1 |- *. clear EH W1.
  assert (Read : 1 < h -> h - 1 <> last_cell w h -> tag (ny' (T' t h) (T' t (h - 1))) = row (cell_at h (h - 1))).
  { intros. rewrite tag_kept by (auto; apply Hy; lia). apply IH; lia. }
  unfold shows_row, last_cell, cell_at in *.
  destruct (mv' (T' t h) (T' t (h - 1))) eqn:M; intros N1 N2.
  - destruct (Nat.eqb_spec c (h - 1)) as [-> | ?].
    { rewrite Read by (try lia; cases; lia). f_equal. destruct (Nat.ltb_spec (h - 1) h), (Nat.ltb_spec (h - 1) (h + 1)); lia. }
    destruct (Nat.eqb_spec c h) as [-> | ?].
    { rewrite IH by (cases; lia). f_equal. destruct (Nat.ltb_spec (h + 1) h), (Nat.ltb_spec h (h + 1)); lia. }
    destruct (Nat.eqb_spec c (h + 1)) as [-> | ?]; [lia |].
    rewrite IH by (cases; lia). f_equal. destruct (Nat.ltb_spec c h), (Nat.ltb_spec c (h + 1)); lia.
  - destruct (Nat.eqb_spec c (h - 1)) as [-> | ?]; [lia |].
    destruct (Nat.eqb_spec c h) as [-> | ?].
    { rewrite Read by (cases; lia). f_equal. destruct (Nat.ltb_spec (h - 1) h), (Nat.ltb_spec h (h - 1)); lia. }
    rewrite IH by (cases; lia). f_equal. destruct (Nat.ltb_spec c h), (Nat.ltb_spec c (h - 1)); lia.
Qed.

(* ---- so no tape repeats a gram ----------------------------------------------------------------------------------- *)
Theorem tagged_never_repeats n t : ~ repeats_in row (w - 4) n -> ~ repeats_gram ns' ny' mv' w T0' h0 n t.
Proof.
  intros R (a & b & Hab & Hb & E). pose proof (wf' t) as W. pose proof (row_kept t) as S.
  set (T1 := T' t) in *. set (h := hd' t) in *. pose proof W as [Hw Hh Hs Ht0 Hp He Hy].
  assert (State : forall c, c < w -> st' (T1 c) = true -> c = h).
  { intros c Hc Q. destruct (Nat.eq_dec c h); auto.
    rewrite (wf_not_state B' st' sym' st_range' st_sym' w T1 h c W Hc) in Q by auto. discriminate. }
  assert (Place : forall c, c < w -> c = 0 \/ c = h \/ c = last_cell w h \/ c = w - 1 \/ sym' (T1 c) = true).
  { intros c Hc. destruct (Nat.eq_dec c 0), (Nat.eq_dec c h), (Nat.eq_dec c (last_cell w h)), (Nat.eq_dec c (w - 1)); auto.
    do 4 right. apply Hy; lia. }
  assert (Bos : forall c, c < w -> T1 c = 1 -> c = 0).
  { intros c Hc Q. destruct (Place c Hc) as [? | [-> | [-> | [-> | Y]]]]; auto; exfalso;
      [apply st_range' in Hs | | | apply sym_range' in Y]; lia. }
  assert (Eos : forall c, c < w -> T1 c = 2 -> c = last_cell w h).
  { intros c Hc Q. destruct (Place c Hc) as [-> | [-> | [-> | [-> | Y]]]]; auto; exfalso;
      [ | apply st_range' in Hs | | apply sym_range' in Y]; lia. }
  (* neither gram has a state or an end marker in it *)
  assert (Plain : forall m, m <= n -> a + m <> h /\ b + m <> h /\ 0 < a + m /\ a + m <> last_cell w h /\ b + m <> last_cell w h).
  { intros m Hm. specialize (E m Hm). repeat split.
    - intros F. assert (b + m = h); [| lia]. apply State; [lia |]. rewrite <- E, F. exact Hs.
    - intros F. assert (a + m = h); [| lia]. apply State; [lia |]. rewrite E, F. exact Hs.
    - destruct (Nat.eq_dec (a + m) 0) as [F | ?]; [| lia]. assert (b + m = 0); [| lia]. apply Bos; [lia |]. congruence.
    - intros F. assert (b + m = last_cell w h); [| lia]. apply Eos; [lia |]. rewrite <- E, F. exact He.
    - intros F. assert (a + m = last_cell w h); [| lia]. apply Eos; [lia |]. rewrite E, F. exact He. }
  assert (Side : forall e, (forall m, m <= n -> e + m <> h) -> e + n < h \/ h < e).
  { intros e Q. destruct (Nat.lt_ge_cases h e); auto. left. destruct (Nat.lt_ge_cases (e + n) h); auto.
    exfalso. apply (Q (h - e)); lia. }
  pose proof (Side a ltac:(intros; apply Plain; auto)) as Sa. pose proof (Side b ltac:(intros; apply Plain; auto)) as Sb.
  assert (La : forall m, m <= n -> b + m < last_cell w h).
  { intros m Hm. destruct (Nat.lt_ge_cases (b + m) (last_cell w h)); auto. exfalso.
    pose proof (Plain m Hm) as (_ & Q & _ & _ & Q'). unfold last_cell in *. cases; lia. }
  apply R. exists (cell_at h a), (cell_at h b).
  pose proof (Plain 0 ltac:(lia)) as P0. pose proof (La n ltac:(lia)) as Ln.
  split; [apply cell_at_order with n; auto; lia |].
  split; [apply cell_at_last; auto; lia |].
  intros m Hm. pose proof (Plain m Hm) as (P1 & P2 & P3 & P4 & P5). pose proof (La m Hm).
  rewrite <- !(cell_at_shift h _ m n) by (auto; lia). rewrite <- !S by lia. rewrite (E m Hm). auto.
Qed.

(* ---- so the program simulates it, and with it the machine one started from --------------------------------------- *)
Theorem tagged_simulated k n t g : 1 <= n -> (k = Paper -> t <= B' ^ n) -> ~ repeats_in row (w - 4) n ->
  (forall p, p < w -> g p = T0' p) -> (forall p, w - 1 <= p -> g (p + 1) = next_tokens B' st' ns' ny' mv' k n g p) ->
  forall s c, s <= t -> c < w -> g (s * w + c) = T' s c /\ plain (g (s * w + c)) = T s c.
Proof.
  intros Hn Hk R G0 G s c Hs Hc. assert (w4 : 4 <= w) by apply (wf_w _ _ _ _ _ start').
  assert (g (s * w + c) = T' s c) as Ew.
  { assert (trace' (s * w + c) = T' s c) as <- by (eapply trace_at; eassumption).
    apply (proj2 (sharp B' st' sym' ns' ny' mv' st_range' sym_range' st_sym' ns_state' ny_sym' ny_bos' ny_eos' mv_bos' mv_eos'
      w T0' h0 start' k n t g Hn Hk
      ltac:(intros p Hp; rewrite G0 by auto; unfold Machine.trace; rewrite Nat.div_small, Nat.mod_small by auto; auto) G)); [| nia].
    intros u _. apply tagged_never_repeats, R. }
  split; auto. rewrite Ew. symmetry. apply tags_erased, Hc.
Qed.
End Tagged.

(* ---- the token ids of `rasp.machines.simulable` --------------------------------------------------------------------------- *)
Section Numbering.
Variables symbols states kinds : nat.               (* kinds: how many tags *)
Hypothesis kinds1 : 1 <= kinds.
Definition is_symbol (s z : nat) := (4 <=? z) && (z <? 4 + s).
Definition is_state_of (s q z : nat) := (4 + s <=? z) && (z <? 4 + s + q).
Notation sym := (is_symbol symbols).
Notation st := (is_state_of symbols states).
Notation sym' := (is_symbol (symbols * kinds)).
Notation st' := (is_state_of (symbols * kinds) states).
Definition tagged_symbol (a tag : nat) := 4 + (a - 4) * kinds + tag.
Definition tagged_state (q : nat) := q - symbols + symbols * kinds.
Definition plain (z : nat) :=
  if z <? 4 then z else if z <? 4 + symbols * kinds then 4 + (z - 4) / kinds else z - symbols * kinds + symbols.
Definition tag (z : nat) := (z - 4) mod kinds.

Lemma is_symbol_spec s z : is_symbol s z = true <-> 4 <= z < 4 + s.
Proof. unfold is_symbol. rewrite andb_true_iff, Nat.leb_le, Nat.ltb_lt. tauto. Qed.
Lemma is_state_spec s q z : is_state_of s q z = true <-> 4 + s <= z < 4 + s + q.
Proof. unfold is_state_of. rewrite andb_true_iff, Nat.leb_le, Nat.ltb_lt. tauto. Qed.

Lemma pair_offset a t : tagged_symbol a t - 4 = (a - 4) * kinds + t.
Proof. unfold tagged_symbol. generalize ((a - 4) * kinds). lia. Qed.
Lemma pair_symbol a t : sym a = true -> t < kinds -> sym' (tagged_symbol a t) = true.
Proof. rewrite !is_symbol_spec. unfold tagged_symbol. intros. nia. Qed.
Lemma pair_plain a t : sym a = true -> t < kinds -> plain (tagged_symbol a t) = a.
Proof.
  intros Ha Ht. pose proof (pair_symbol a t Ha Ht) as P. rewrite is_symbol_spec in P, Ha. unfold plain.
  destruct (Nat.ltb_spec (tagged_symbol a t) 4), (Nat.ltb_spec (tagged_symbol a t) (4 + symbols * kinds)); try lia.
  rewrite pair_offset.
  rewrite Nat.div_add_l, Nat.div_small by lia. lia.
Qed.
Lemma pair_tag a t : t < kinds -> tag (tagged_symbol a t) = t.
Proof.
  intros Ht. unfold tag. rewrite pair_offset, Nat.add_comm.
  rewrite Nat.mod_add, Nat.mod_small by lia. auto.
Qed.
Lemma symbol_pair z : sym' z = true -> sym (plain z) = true /\ tag z < kinds /\ z = tagged_symbol (plain z) (tag z).
Proof.
  rewrite !is_symbol_spec. intros H. unfold plain, tag, tagged_symbol.
  destruct (Nat.ltb_spec z 4), (Nat.ltb_spec z (4 + symbols * kinds)); try lia.
  pose proof (Nat.div_mod (z - 4) kinds ltac:(lia)). pose proof (Nat.mod_upper_bound (z - 4) kinds ltac:(lia)).
  set (d := (z - 4) / kinds) in *. set (m := (z - 4) mod kinds) in *. clearbody d m. repeat split; nia.
Qed.
Lemma state_lift z : st' z = true -> st (plain z) = true /\ z = tagged_state (plain z).
Proof.
  rewrite !is_state_spec. intros H. unfold plain, tagged_state.
  destruct (Nat.ltb_spec z 4), (Nat.ltb_spec z (4 + symbols * kinds)); repeat split; lia.
Qed.
Lemma lift_plain q : st q = true -> st' (tagged_state q) = true /\ plain (tagged_state q) = q.
Proof.
  rewrite !is_state_spec. intros H. unfold plain, tagged_state.
  destruct (Nat.ltb_spec (q - symbols + symbols * kinds) 4),
    (Nat.ltb_spec (q - symbols + symbols * kinds) (4 + symbols * kinds)); repeat split; lia.
Qed.

(* any machine, and its table over pairs: `_tagged` in Python *)
Variables ns ny : nat -> nat -> nat.
Variable mv : nat -> nat -> bool.
Record valid_machine : Prop := {
  m_state : forall q a, st q = true -> sym a = true \/ a = 1 \/ a = 2 -> st (ns q a) = true;
  m_symbol : forall q a, st q = true -> sym a = true -> sym (ny q a) = true;
  m_bos : forall q, st q = true -> ny q 1 = 1 /\ mv q 1 = true;
  m_eos : forall q, st q = true -> ny q 2 = 2 /\ mv q 2 = false }.
Variables ns' ny' : nat -> nat -> nat.
Variable mv' : nat -> nat -> bool.
Record tagged_table : Prop := {
  t_symbol : forall q a t, st q = true -> sym a = true -> t < kinds ->
    ns' (tagged_state q) (tagged_symbol a t) = tagged_state (ns q a) /\ ny' (tagged_state q) (tagged_symbol a t) = tagged_symbol (ny q a) t /\ mv' (tagged_state q) (tagged_symbol a t) = mv q a;
  t_end : forall q e, st q = true -> e = 1 \/ e = 2 ->
    ns' (tagged_state q) e = tagged_state (ns q e) /\ ny' (tagged_state q) e = e /\ mv' (tagged_state q) e = mv q e }.
Hypothesis M : valid_machine.
Hypothesis M' : tagged_table.

Variables w h0 : nat.
Variable T0 : tape.
Hypothesis start : wf st sym w T0 h0.
Variable row : nat -> nat.
Hypothesis row_kinds : forall i, row i < kinds.
Definition tagged_tape : tape := fun c =>
  if c =? h0 then tagged_state (T0 c)
  else if (c =? 0) || (c =? last_cell w h0) || (c =? w - 1) then T0 c else tagged_symbol (T0 c) (row (cell_at h0 c)).

Lemma tagged_start : wf st' sym' w tagged_tape h0 /\ shows_row tag w row tagged_tape h0 /\
  forall c, c < w -> T0 c = plain (tagged_tape c).
Proof.
  pose proof start as [Hw Hh Hs Hb Hp He Hy].
  assert (L0 : last_cell w h0 <> h0 /\ 0 < last_cell w h0 < w - 1) by (unfold last_cell; cases; lia).
  assert (Ends : forall c, c = 0 \/ c = last_cell w h0 \/ c = w - 1 -> tagged_tape c = T0 c).
  { intros c Hc. unfold tagged_tape. destruct (Nat.eqb_spec c h0); [lia |].
    destruct (Nat.eqb_spec c 0), (Nat.eqb_spec c (last_cell w h0)), (Nat.eqb_spec c (w - 1)); auto; lia. }
  assert (Head : tagged_tape h0 = tagged_state (T0 h0)) by (unfold tagged_tape; rewrite Nat.eqb_refl; auto).
  assert (Cells : forall c, 0 < c < w - 1 -> c <> h0 -> c <> last_cell w h0 -> tagged_tape c = tagged_symbol (T0 c) (row (cell_at h0 c))).
  { intros c Hc N1 N2. unfold tagged_tape. destruct (Nat.eqb_spec c h0); [lia |].
    destruct (Nat.eqb_spec c 0), (Nat.eqb_spec c (last_cell w h0)), (Nat.eqb_spec c (w - 1)); auto; lia. }
  split; [| split].
  - constructor; auto; try (rewrite Ends; auto; fail).
    + rewrite Head. apply lift_plain; auto.
    + intros c Hc N1 N2. rewrite Cells by auto. apply pair_symbol; auto.
  - intros c Hc N1 N2. rewrite Cells by auto. apply pair_tag; auto.
  - intros c Hc. destruct (Nat.eq_dec c h0) as [-> | N1]; [rewrite Head; symmetry; apply lift_plain; auto |].
    destruct (Nat.eq_dec c 0), (Nat.eq_dec c (last_cell w h0)), (Nat.eq_dec c (w - 1));
      try (rewrite Ends by lia; unfold plain; subst c; rewrite ?Hb, ?He, ?Hp; reflexivity).
    rewrite Cells by lia. symmetry. apply pair_plain; auto. apply Hy; lia.
Qed.

Theorem simulable k n t g : 1 <= n -> (k = Paper -> t <= (4 + symbols * kinds + states) ^ n) ->
  ~ repeats_in row (w - 4) n -> (forall p, p < w -> g p = tagged_tape p) ->
  (forall p, w - 1 <= p -> g (p + 1) = next_tokens (4 + symbols * kinds + states) st' ns' ny' mv' k n g p) ->
  forall s c, s <= t -> c < w -> plain (g (s * w + c)) = Machine.T ns ny mv T0 h0 s c.
Proof.
  intros Hn Hk R G0 G s c Hs Hc. destruct tagged_start as (W & SR & E).
  assert (Read : forall q a, st' q = true -> sym' a = true ->
    ns' q a = tagged_state (ns (plain q) (plain a)) /\ ny' q a = tagged_symbol (ny (plain q) (plain a)) (tag a) /\ mv' q a = mv (plain q) (plain a)).
  { intros q a Q A. destruct (state_lift q Q) as [Q1 Q2]. destruct (symbol_pair a A) as (A1 & A2 & A3).
    pose proof (t_symbol M' (plain q) (plain a) (tag a) Q1 A1 A2) as X. rewrite <- Q2, <- A3 in X. exact X. }
  assert (End : forall q e, st' q = true -> e = 1 \/ e = 2 ->
    ns' q e = tagged_state (ns (plain q) (plain e)) /\ ny' q e = e /\ mv' q e = mv (plain q) (plain e)).
  { intros q e Q He. destruct (state_lift q Q) as [Q1 Q2]. pose proof (t_end M' (plain q) e Q1 He) as X.
    rewrite <- Q2 in X. assert (plain e = e) as -> by (destruct He as [-> | ->]; reflexivity). exact X. }
  assert (P : forall q a, st' q = true -> sym' a = true \/ a = 1 \/ a = 2 -> ns' q a = tagged_state (ns (plain q) (plain a)) /\
    plain (ny' q a) = ny (plain q) (plain a) /\ mv' q a = mv (plain q) (plain a) /\ st (ns (plain q) (plain a)) = true).
  { intros q a Q A. destruct (state_lift q Q) as [Q1 _]. destruct A as [A | A].
    - destruct (Read q a Q A) as (X & Y & Z). destruct (symbol_pair a A) as (A1 & A2 & _).
      split; [exact X |]. split; [rewrite Y; apply pair_plain; auto; apply (m_symbol M); auto |].
      split; [exact Z | apply (m_state M); auto].
    - destruct (End q a Q A) as (X & Y & Z). assert (plain a = a) as Pa by (destruct A as [-> | ->]; reflexivity).
      split; [exact X |]. split.
      { rewrite Y, Pa. destruct A as [-> | ->]; symmetry; [apply (m_bos M) | apply (m_eos M)]; auto. }
      split; [exact Z | apply (m_state M); auto; rewrite Pa; auto]. }
  eapply (tagged_simulated ns ny mv (4 + symbols * kinds + states) st' sym' ns' ny' mv') with (plain := plain) (tag := tag) (row := row).
  all: try eassumption.
  - intros z Hz. apply is_state_spec in Hz. lia.
  - intros z Hz. apply is_symbol_spec in Hz. lia.
  - intros z Hz. apply is_state_spec in Hz. destruct (sym' z) eqn:Y; auto. apply is_symbol_spec in Y. lia.
  - intros q a Q A. destruct (P q a Q A) as (-> & _ & _ & X). apply lift_plain; auto.
  - intros q a Q A. destruct (Read q a Q A) as (_ & -> & _). destruct (symbol_pair a A) as (A1 & A2 & _).
    destruct (state_lift q Q) as [Q1 _]. apply pair_symbol; auto. apply (m_symbol M); auto.
  - intros q Q. apply (End q 1); auto.
  - intros q Q. apply (End q 2); auto.
  - intros q Q. destruct (End q 1) as (_ & _ & ->); auto. apply (m_bos M). apply state_lift; auto.
  - intros q Q. destruct (End q 2) as (_ & _ & ->); auto. apply (m_eos M). apply state_lift; auto.
  - intros q a Q A. destruct (P q a Q A) as (-> & _ & _ & X). apply lift_plain; auto.
  - intros q a Q A. apply P; auto.
  - intros q a Q A. apply P; auto.
  - intros q a Q A. destruct (Read q a Q A) as (_ & -> & _). apply pair_tag. apply symbol_pair; auto.
Qed.
End Numbering.

(* a table over pairs exists *)
Definition ns_tagged symbols kinds (ns : nat -> nat -> nat) q a := tagged_state symbols kinds (ns (plain symbols kinds q) (plain symbols kinds a)).
Definition ny_tagged symbols kinds (ny : nat -> nat -> nat) q a :=
  if a <? 4 then a else tagged_symbol kinds (ny (plain symbols kinds q) (plain symbols kinds a)) (tag kinds a).
Definition mv_tagged symbols kinds (mv : nat -> nat -> bool) q a := mv (plain symbols kinds q) (plain symbols kinds a).
Lemma tagged_table_exists symbols states kinds ns ny mv : 1 <= kinds ->
  tagged_table symbols states kinds ns ny mv (ns_tagged symbols kinds ns) (ny_tagged symbols kinds ny) (mv_tagged symbols kinds mv).
Proof.
  intros K. constructor; unfold ns_tagged, ny_tagged, mv_tagged.
  - intros q a t Q A Ht. rewrite (proj2 (lift_plain symbols states kinds K q Q)), pair_plain, pair_tag by auto.
    destruct (Nat.ltb_spec (tagged_symbol kinds a t) 4); auto. apply pair_symbol with (kinds := kinds) (t := t) in A; auto.
    apply is_symbol_spec in A. lia.
  - intros q e Q He. rewrite (proj2 (lift_plain symbols states kinds K q Q)). destruct He as [-> | ->]; auto.
Qed.

(* ---- every machine, with the rows of DeBruijn.v ------------------------------------------------------------------ *)
(* A machine with these symbols and states, started on a tape of w - 4 cells; so many kinds of tags that the cells are at
   most kinds^(n+1) + n. Then there is a row of tags such that whatever the program writes after the tagged tape is, with
   the tags erased, the machine's run: through tape t <= base^n with the paper's packing, for ever with the unbounded. *)
Theorem every_machine_simulated symbols states kinds ns ny mv w h0 T0 n :
  valid_machine symbols states ns ny mv -> wf (is_state_of symbols states) (is_symbol symbols) w T0 h0 ->
  1 <= kinds -> 1 <= n -> w - 4 <= kinds ^ (n + 1) + n ->
  exists row, (forall i, row i < kinds) /\ forall ns' ny' mv' k t g,
    tagged_table symbols states kinds ns ny mv ns' ny' mv' ->
    let base := 4 + symbols * kinds + states in
    (k = Paper -> t <= base ^ n) -> (forall p, p < w -> g p = tagged_tape symbols kinds w h0 T0 row p) ->
    (forall p, w - 1 <= p -> g (p + 1) = next_tokens base (is_state_of (symbols * kinds) states) ns' ny' mv' k n g p) ->
    forall s c, s <= t -> c < w -> plain symbols kinds (g (s * w + c)) = Machine.T ns ny mv T0 h0 s c.
Proof.
  intros M W K N L. destruct (tags_exist kinds n (w - 4) K L) as (row & R1 & R2). exists row. split; auto.
  intros ns' ny' mv' k t g M' base Hk G0 G. eapply simulable; eassumption.
Qed.

(* ---- guards: the hypothesis on the row, and that rules keep the tag, are both needed ----------------------------- *)
(* A machine with one symbol and one state that runs to the right; four cells, started on bos. *)
Module Guards.
Definition read (l : list nat) : nat -> nat := fun c => nth c l 0.
Fixpoint written (f : list nat -> nat) (text : list nat) (count : nat) : list nat :=
  match count with 0 => text | S count => written f (text ++ [f text]) count end.
Definition ns (q a : nat) := 5.
Definition ny (q a : nat) := a.
Definition mv (q a : nat) := negb (a =? 2).
Definition tapes kinds row := map (Machine.trace (ns_tagged 1 kinds ns) (ny_tagged 1 kinds ny) (mv_tagged 1 kinds mv) 8
  (tagged_tape 1 kinds 8 1 (read [1; 5; 4; 4; 4; 4; 2; 0]) (read row)) 1) (seq 0 16).
Definition next kinds n (text : list nat) : nat := Z.to_nat (last (output (fun z => z) (5 + kinds) (is_state_of kinds 1)
  (ns_tagged 1 kinds ns) (ny_tagged 1 kinds ny) (mv_tagged 1 kinds mv) (program Unbounded n) (map Z.of_nat text)) 0%Z).
Definition simulates kinds n row :=
  same (written (next kinds n) (firstn 8 (tapes kinds row)) 8) (tapes kinds row).

Example two_tags_simulate : simulates 2 1 [0; 0; 1; 1] = true. Proof. vm_compute. reflexivity. Qed.
Example same_tag_everywhere_fails : simulates 2 1 [0; 0; 0; 0] = false. Proof. vm_compute. reflexivity. Qed.
Example one_tag_fails : simulates 1 1 [0; 0; 0; 0] = false. Proof. vm_compute. reflexivity. Qed.
(* a rule that writes another tag *)
Definition forgetful (q a : nat) := if a <? 4 then a else 4.
Example a_lost_tag_repeats : repeats_gram (ns_tagged 1 2 ns) forgetful (mv_tagged 1 2 mv) 8
  (tagged_tape 1 2 8 1 (read [1; 5; 4; 4; 4; 4; 2; 0]) (read [0; 1; 1; 0])) 1 1 4.
Proof. exists 1, 2. repeat split; try lia. intros [| [| m]] Hm; try lia; vm_compute; reflexivity. Qed.
Lemma forgetful_is_no_table : ~ tagged_table 1 1 2 ns ny mv (ns_tagged 1 2 ns) forgetful (mv_tagged 1 2 mv).
Proof. intros M'. destruct (t_symbol _ _ _ _ _ _ _ _ _ M' 5 4 1 eq_refl eq_refl ltac:(lia)) as (_ & E & _). discriminate. Qed.
End Guards.
